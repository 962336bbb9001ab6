"""Every recipe, and every policy under every tracker, obeys the same laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import ClientData, Method, Objective
from bcfl.association import UNSEEN
from bcfl.policies import KMeansAssociation, LikelihoodAssociation, SingleCluster, WarmUp
from bcfl.policies.bipartition import RecursiveBipartition
from bcfl.policies.clustering_temperature import AtRound
from bcfl.policies.fedgroup import ColdStartGroups
from bcfl.policies.one_shot import OneShotClustering
from bcfl.policies.update_clustering import KMeansClustering
from bcfl.trackers import AdaptiveMultiHypothesis, Consensus, Exact, Greedy, MultiHypothesis

POINT = Objective(local_steps=4, batch_size=4)
LAPLACE = replace(POINT, curvature="ggn", prior_weight=1.0)
RECIPES = [
    "fedavg",
    "ifca",
    "fesem",
    "wecfl",
    "bcfl-g",
    "bcfl-c-1",
    "bcfl-c-3",
    "bcfl-mh-1",
    "bcfl-mh-3",
    "bcfl-mht-4",
]
CLUSTERED = [name for name in RECIPES if name != "fedavg"]
BY_UPDATES = ["ocfl-hdbscan", "ocfl-kmeans", "scl", "bcl", "fedgroup"]
POLICIES = {
    "single": SingleCluster(LAPLACE),
    "k-means by samples": KMeansAssociation(2, LAPLACE, "samples"),
    "k-means, equal": KMeansAssociation(2, POINT, "equal"),
    "loss": LikelihoodAssociation(2, POINT, solver="argmin"),
    "likelihood, Bayes": LikelihoodAssociation(2, LAPLACE, 1.0),
    "likelihood, murty": LikelihoodAssociation(2, LAPLACE, solver="murty"),
    "likelihood of a subset": LikelihoodAssociation(2, LAPLACE, 5.0, score_samples=3),
    "joint evidence": LikelihoodAssociation(2, LAPLACE, 1.0, "joint"),
    "empirical Fisher": LikelihoodAssociation(2, replace(LAPLACE, curvature="empirical_fisher")),
    "warm-up": WarmUp(KMeansAssociation(2, LAPLACE), LikelihoodAssociation(2, LAPLACE, 2.0), 1),
    "one shot": OneShotClustering(POINT, KMeansClustering(2), AtRound(1)),
    "bipartition": RecursiveBipartition(POINT, 2.0, 0.0, "relative", when=0),
    "cold start": ColdStartGroups(2, POINT, POINT),
}
TRACKERS = {
    "greedy": Greedy(),
    "consensus of 3": Consensus(3),
    "3 hypotheses": MultiHypothesis(3),
    "3 hypotheses, 2 each": MultiHypothesis(3, 2),
    "exact": Exact(),
    "adaptive": AdaptiveMultiHypothesis(4),
}


@pytest.fixture(params=[*RECIPES, *(f"{name}-w" for name in CLUSTERED), *BY_UPDATES])
def method(request, recipe):
    return recipe(request.param)


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param]


@pytest.fixture(params=TRACKERS)
def tracker(request):
    return TRACKERS[request.param]


def hypotheses_of(run):
    """All associations that a run ever held."""
    return [a for snapshot in run.state.history for a in snapshot.associations]


def assert_lawful(run, clients):
    assert run.clients == tuple(sorted(clients))
    for association in hypotheses_of(run):
        serving = association.serving
        seen = association.labels != UNSEEN
        assert serving.shape == (len(clients), association.num_clusters)
        assert serving.min() >= 0
        np.testing.assert_allclose(serving[seen].sum(axis=1), 1, atol=1e-12)
        assert not serving[~seen].any()
        assert set(association.labels[seen]) <= set(range(association.num_clusters))
        assert (serving[seen, association.labels[seen]] == serving[seen].max(axis=1)).all()
        assert association.sizes.sum() == seen.sum()
        if association.probabilities is None:
            assert set(np.unique(serving)) <= {0.0, 1.0}
    for snapshot in run.state.history:
        assert np.exp(snapshot.log_weights).sum() == pytest.approx(1)
        assert (np.diff(snapshot.log_weights) <= 0).all()
        assert not snapshot.log_captured_mass > 0
    for hypothesis in run.hypotheses:
        for posterior in hypothesis.clusters:
            for block in posterior.blocks:
                assert torch.isfinite(block.gaussian.mean).all()
                assert (block.gaussian.precision >= 0).all()


def everything(state):
    """All numbers of a state, as bytes."""
    numbers = []
    for h in state.hypotheses:
        numbers += [h.association.labels, np.float64(h.log_weight), h.association.serving]
        for posterior in h.clusters:
            for b in posterior.blocks:
                for tensor in (b.gaussian.mean, b.gaussian.precision, b.prior.precision, b.buffers):
                    numbers.append(tensor.numpy())
    return [np.ascontiguousarray(n).tobytes() for n in numbers]


def test_a_method_gives_lawful_hypotheses(method, federation):
    run = federation(method).run(3)
    assert_lawful(run, [f"c{i}" for i in range(6)])
    assert len(run.records) == run.state.round == 3
    assert not any(record.ledger.failures for record in run.records)


def test_a_policy_under_a_tracker_gives_lawful_hypotheses(policy, tracker, federation):
    run = federation(Method(policy, tracker), sizes=(4, 7, 5)).run(2)
    assert_lawful(run, ["c0", "c1", "c2"])


def test_bcfl_exact_keeps_every_history(federation):
    run = federation("bcfl-exact", sizes=(4, 5, 6)).run(2)
    assert [len(s.associations) for s in run.state.history] == [2**3, 2**6]
    assert_lawful(run, ["c0", "c1", "c2"])
    assert [s.log_captured_mass for s in run.state.history] == pytest.approx([0, 0], abs=1e-9)


def test_the_order_in_which_clients_are_given_changes_nothing(method, federation, make_clients):
    clients = make_clients((8, 3, 5, 9, 1, 4))
    given = federation(method, clients=clients).run(3)
    shuffled = federation(method, clients=[clients[i] for i in (4, 0, 5, 2, 3, 1)]).run(3)
    assert everything(given.state) == everything(shuffled.state)


def test_a_seed_decides_all_bits(method, federation):
    first, again, other = (federation(method, seed=seed).run(2) for seed in (3, 3, 4))
    assert everything(first.state) == everything(again.state)
    assert everything(first.state) != everything(other.state)


def test_seeds_and_states_of_other_libraries_change_nothing(method, federation):
    first = federation(method).run(2)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 - the global state must not matter
    assert everything(first.state) == everything(federation(method).run(2).state)


def test_going_on_equals_going_through(method, federation):
    states = []
    whole = federation(method).run(4, on_round=lambda state, record: states.append(state))
    rest = federation(method).run(4, state=states[1])
    assert everything(whole.state) == everything(rest.state)
    assert [r.round for r in rest.records] == [3, 4]


def test_a_round_leaves_its_state_as_it_was(method, federation):
    before = federation(method).run(1).state
    bytes_before, history = everything(before), before.history
    federation(method).run(3, state=before)
    assert everything(before) == bytes_before
    assert before.history is history
    assert before.round == len(history) == 1


def test_absent_clients_keep_their_serving(method, federation):
    many = (8,) * 9
    run = federation(method, sizes=many, participation=0.4, seed=5).run(5)
    assert_lawful(run, [f"c{i}" for i in range(9)])
    seen = set()
    for before, record in zip((None, *run.records), run.records, strict=False):
        leading = record.snapshot.associations[0]
        assert len(record.participants) == 4
        seen |= set(record.participants)
        for client in set(run.clients) - set(record.participants):
            row = leading.serving[leading.position[client]]
            if client not in seen:
                assert not row.any()
            elif len(before.snapshot.associations) == 1:
                old = before.snapshot.associations[0]
                kept = old.serving[old.position[client]]
                more = len(row) - len(kept)  # clusters may have been added
                assert row == pytest.approx(np.pad(kept, (0, more)), abs=1e-12)


def test_hypotheses_keep_absent_clients_where_their_parents_had_them(federation):
    run = federation("bcfl-mh-3", sizes=(8,) * 9, participation=0.4, seed=5).run(4)
    for before, record in zip(run.records, run.records[1:], strict=False):
        snapshot = record.snapshot
        for association, (parent,) in zip(snapshot.associations, snapshot.parents, strict=True):
            old = before.snapshot.associations[parent]
            for client in set(run.clients) - set(record.participants):
                assert association.label(client) == old.label(client)


def test_when_everybody_drops_out_nothing_is_learned(method, federation):
    run = federation(method, drop_out=1.0).run(2)
    assert_lawful(run, run.clients)
    start = federation(method).initial_state()
    for hypothesis in run.hypotheses:
        for new, old in zip(hypothesis.clusters, start.hypotheses.best.clusters, strict=True):
            assert torch.equal(new.blocks[0].gaussian.mean, old.blocks[0].gaussian.mean)
    assert all(record.ledger.failures for record in run.records)
    assert set(run.records[-1].evaluations) == set(run.clients)


def test_after_a_round_without_anybody_the_federation_goes_on(method, federation):
    learned = federation(method).run(2).state
    alone = federation(method, drop_out=1.0).run(3, state=learned)
    for hypothesis in alone.hypotheses:
        means = [p.blocks[0].gaussian.mean for p in hypothesis.clusters]
        assert any(
            all(
                torch.equal(m, p.blocks[0].gaussian.mean)
                for m, p in zip(means, parent.clusters, strict=True)
            )
            for parent in learned.hypotheses
        )
    assert_lawful(federation(method).run(5, state=alone.state), alone.clients)


def test_random_drop_outs_leave_lawful_hypotheses(method, federation):
    run = federation(method, sizes=(5,) * 8, drop_out=0.5, seed=2).run(4)
    assert_lawful(run, run.clients)
    assert any(record.ledger.failures for record in run.records)


@pytest.mark.parametrize("sizes", [(1,) * 5, (1, 2, 1, 40, 3), (2, 1)])
def test_clients_of_few_samples_are_clients(method, federation, sizes):
    assert_lawful(federation(method, sizes=sizes).run(2), [f"c{i}" for i in range(len(sizes))])


def test_a_batch_may_be_larger_than_a_client(recipe, federation):
    for name in RECIPES:
        method = recipe(name, objective=Objective(local_steps=3, batch_size=1000))
        assert_lawful(federation(method).run(2), [f"c{i}" for i in range(6)])


def test_clients_without_test_data_train_and_are_left_out_of_tests(
    method, federation, make_clients
):
    clients = [*make_clients((6, 7, 8)), *(c for c in make_clients((6,) * 5, tested=0)[3:])]
    run = federation(method, clients=clients).run(2)
    assert_lawful(run, ["c0", "c1", "c2", "c3", "c4"])
    assert set(run.records[-1].evaluations) == {"c0", "c1", "c2"}
    assert run.hypotheses.best.association.label("c4") != UNSEEN


def test_nobody_needs_test_data(method, federation, make_clients):
    run = federation(method, clients=make_clients((6, 7, 8), tested=0)).run(2)
    assert [dict(record.evaluations) for record in run.records] == [{}, {}]


def test_clients_of_one_class_are_clients(method, federation):
    random = np.random.default_rng(0)
    clients = [
        ClientData.from_arrays(f"c{i}", (random.normal(size=(6, 3)), np.full(6, i % 2)))
        for i in range(4)
    ]
    assert_lawful(federation(method, clients=clients).run(2), ["c0", "c1", "c2", "c3"])


def test_empty_clusters_keep_their_mean(method, federation):
    x = np.random.default_rng(1).normal(size=(6, 3))
    clients = [ClientData.from_arrays(f"c{i}", (x, [0, 1, 0, 1, 0, 1])) for i in range(4)]
    alike = replace(method, policy=_with_full_batches(method.policy))
    run = federation(alike, clients=clients).run(1)
    start = federation(alike, clients=clients).initial_state().hypotheses.best.clusters
    assert_lawful(run, ["c0", "c1", "c2", "c3"])
    for hypothesis in run.hypotheses:
        for index in np.flatnonzero(hypothesis.association.serving.sum(axis=0) == 0):
            kept = hypothesis.clusters[index].blocks[0].gaussian.mean
            assert torch.equal(kept, start[index].blocks[0].gaussian.mean)


def test_clients_of_equal_data_join_the_same_cluster(federation):
    x = np.random.default_rng(1).normal(size=(6, 3))
    clients = [ClientData.from_arrays(f"c{i}", (x, [0, 1, 0, 1, 0, 1])) for i in range(4)]
    for name in ("ifca", "bcfl-g", "bcfl-mh-3"):
        sizes = federation(name, clients=clients).run(1).hypotheses.best.association.sizes
        assert sorted(sizes) == [0, 4]


def _with_full_batches(policy):
    if isinstance(policy, WarmUp):
        first, then = (_with_full_batches(p) for p in (policy.first, policy.then))
        return WarmUp(first, then, policy.rounds)
    return replace(policy, objective=replace(policy.objective, batch_size=1000))


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
@pytest.mark.parametrize("fusion", ["precision_weighted", "exact", "literal"])
def test_every_fusion_and_memory_runs(recipe, federation, fusion, memory):
    for name in ("bcfl-g", "bcfl-c-3", "bcfl-mh-3"):
        method = recipe(name, objective=replace(LAPLACE, learning_rate=0.01))
        method = replace(
            method, aggregation=replace(method.aggregation, fusion=fusion, memory=memory)
        )
        run = federation(method).run(3)
        assert_lawful(run, [f"c{i}" for i in range(6)])
