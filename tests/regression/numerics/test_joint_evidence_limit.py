"""Joint evidence of all associations knows how much of the mass is kept: all that were weighed."""

from itertools import pairwise

import numpy as np
import pytest

from bcfl import Aggregation, Federation, Method, Objective
from bcfl.policies import LikelihoodAssociation
from bcfl.trackers import MultiHypothesis


@pytest.mark.parametrize("clients", [5, 6])
def test_captured_mass(make_clients, model, clients):
    objective = Objective(local_steps=1, curvature="ggn")
    masses = []
    for kept in (1, 4, 2**clients):
        policy = LikelihoodAssociation(
            num_clusters=2, objective=objective, temperature=1.0, evidence="joint"
        )
        method = Method(
            policy=policy, tracker=MultiHypothesis(kept), aggregation=Aggregation(), name="joint"
        )
        run = Federation(make_clients(clients, samples=4, test=0), model, method, seed=0).run(1)
        masses.append(run.hypotheses.log_captured_mass)
    assert np.isfinite(masses).all()
    assert all(fewer < more for fewer, more in pairwise(masses))
    assert masses[-1] == pytest.approx(0.0, abs=1e-12)
