"""Every policy under every tracker, and every way to fuse, gives lawful hypotheses."""

from dataclasses import replace

import numpy as np
import pytest

from bcfl import ClientData, Method, Objective
from bcfl.policies import FedAvg, KMeansAssociation, LikelihoodAssociation, WarmUp
from bcfl.policies.baselines.ensemble import Ensemble
from bcfl.policies.baselines.feddrift import FedDrift
from bcfl.policies.baselines.fedsoft import FedSoft
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.policies.updates.bipartition import RecursiveBipartition
from bcfl.policies.updates.clustering_temperature import AtRound
from bcfl.policies.updates.fedgroup import FedGroup
from bcfl.policies.updates.one_shot import OneShotClustering
from bcfl.policies.updates.update_clustering import KMeansClustering
from bcfl.policies.wrappers.frozen import Frozen
from bcfl.trackers import AdaptiveMultiHypothesis, Consensus, Exact, Greedy, MultiHypothesis

POINT = Objective(local_steps=4, batch_size=4)
LAPLACE = replace(POINT, curvature="ggn", prior_weight=1.0)
POLICIES = {
    "single": FedAvg(LAPLACE),
    "k-means by samples": KMeansAssociation(num_clusters=2, objective=LAPLACE, weighting="samples"),
    "k-means, equal": KMeansAssociation(num_clusters=2, objective=POINT, weighting="equal"),
    "few shots": Frozen(KMeansAssociation(num_clusters=2, objective=POINT), 1),
    "loss": LikelihoodAssociation(num_clusters=2, objective=POINT, solver="argmin"),
    "likelihood, Bayes": LikelihoodAssociation(num_clusters=2, objective=LAPLACE, temperature=1.0),
    "likelihood, murty": LikelihoodAssociation(num_clusters=2, objective=LAPLACE, solver="murty"),
    "likelihood of a subset": LikelihoodAssociation(
        num_clusters=2, objective=LAPLACE, temperature=5.0, score_samples=3
    ),
    "joint evidence": LikelihoodAssociation(
        num_clusters=2, objective=LAPLACE, temperature=1.0, evidence="joint"
    ),
    "empirical Fisher": LikelihoodAssociation(
        num_clusters=2, objective=replace(LAPLACE, curvature="empirical_fisher")
    ),
    "warm-up": WarmUp(
        KMeansAssociation(num_clusters=2, objective=LAPLACE),
        LikelihoodAssociation(num_clusters=2, objective=LAPLACE, temperature=2.0),
        1,
    ),
    "one shot": OneShotClustering(POINT, KMeansClustering(2), AtRound(1)),
    "bipartition": RecursiveBipartition(
        objective=POINT, mean_norm=2.0, client_norm=0.0, scale="relative", first_round=0
    ),
    "cold start": FedGroup(groups=2, objective=POINT, cold_start=POINT),
    "alone": LocalTraining(LAPLACE),
    "ensemble": Ensemble(2, LAPLACE),
    "soft": FedSoft(num_clusters=2, objective=POINT),
    "drift": FedDrift(objective=POINT),
}
TRACKERS = {
    "greedy": Greedy(),
    "consensus of 3": Consensus(3),
    "3 hypotheses": MultiHypothesis(3),
    "3 hypotheses, 2 each": MultiHypothesis(3, 2),
    "exact": Exact(),
    "adaptive": AdaptiveMultiHypothesis(max_hypotheses=4),
}


@pytest.mark.parametrize("tracker", TRACKERS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_under_a_tracker_gives_lawful_hypotheses(
    policy, tracker, federation, assert_lawful
):
    method = Method(policy=POLICIES[policy], tracker=TRACKERS[tracker])
    run = federation(method, sizes=(4, 7, 5)).run(2)
    assert_lawful(run, ["c0", "c1", "c2"])


def test_bcfl_exact_keeps_every_history(federation, assert_lawful):
    run = federation("bcfl-exact", sizes=(4, 5, 6)).run(2)
    assert [len(s.associations) for s in run.state.history] == [2**3, 2**6]
    assert_lawful(run, ["c0", "c1", "c2"])
    assert [s.log_captured_mass for s in run.state.history] == pytest.approx([0, 0], abs=1e-9)


def test_bcfl_exact_obeys_the_laws_of_the_others(federation, everything, make_clients):
    """Resuming equals going through, and the order of clients changes no bit."""
    clients, states = make_clients((4, 5, 6)), []
    whole = federation("bcfl-exact", clients=clients).run(
        2, on_round=lambda state, _: states.append(state)
    )
    turned = federation("bcfl-exact", clients=clients[::-1])
    assert everything(turned.run(2).state) == everything(whole.state)
    assert everything(turned.run(2, state=states[0]).state) == everything(whole.state)


@pytest.mark.parametrize("name", ["ifca", "bcfl-g", "bcfl-mh-3", "feddrift", "fedsoft"])
def test_clients_of_equal_data_join_the_same_cluster(name, federation):
    x = np.random.default_rng(1).normal(size=(6, 3))
    clients = [ClientData.from_arrays(f"c{i}", (x, [0, 1, 0, 1, 0, 1])) for i in range(4)]
    sizes = federation(name, clients=clients).run(3).hypotheses.best.association.sizes
    assert sorted(sizes)[-1] == 4


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
@pytest.mark.parametrize("fusion", ["precision_weighted", "exact", "literal"])
@pytest.mark.parametrize("name", ["bcfl-c-3", "bcfl-mh-3"])
def test_every_fusion_and_memory_runs(name, fusion, memory, recipe, federation, assert_lawful):
    method = recipe(name, objective=replace(LAPLACE, learning_rate=0.01))
    method = replace(method, aggregation=replace(method.aggregation, fusion=fusion, memory=memory))
    assert_lawful(federation(method).run(3), [f"c{i}" for i in range(6)])
