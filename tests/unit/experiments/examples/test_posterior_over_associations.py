import re

import numpy as np
import pytest

from experiments.examples import posterior_over_associations


def test_exact_and_kept_associations(capsys):
    runs = posterior_over_associations.posteriors(0)
    exact = runs["bcfl-exact"]
    assert len(exact.hypotheses) == 2**6
    weights = np.sort(exact.hypotheses.weights)[::-1]
    assert weights[0] < 0.9
    for kept in posterior_over_associations.KEPT:
        captured = np.exp(runs[f"bcfl-mh-{kept}"].hypotheses.log_captured_mass)
        assert captured == pytest.approx(weights[:kept].sum(), rel=1e-6)
    posterior_over_associations.main()
    assert len(re.findall(r"client-\d", capsys.readouterr().out)) == 6
