import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies.baselines.fedsoft import FedSoft, softly_served
from bcfl.protocol.answers import Trained
from bcfl.protocol.regularizers import Attraction
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.best_counts import BestCounts

NAMES = ("a", "b", "c")
COUNTS = {"a": (3, 1), "b": (0, 4), "c": (2, 2)}


@pytest.fixture
def parent(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return Hypothesis(clusters=clusters, association=Association.unseen(NAMES, 2))


def reply(request):
    if isinstance(request, Score):
        return BestCounts(np.array(COUNTS[request.client]), 4)
    value = float("abc".index(request.client))
    return Trained(
        mean=torch.full((8,), value),
        buffers=torch.empty(0),
        curvature=torch.ones(()),
        num_samples=2,
    )


@pytest.fixture
def associated(context):
    """Let a policy associate; returns what it asked and its candidate."""

    def of(policy, hypothesis, present=NAMES, silent=(), round=0):
        (chosen,), exchanges = drive(
            policy.associate(hypothesis, context(present, round)),
            lambda r: None if r.client in silent else reply(r),
            return_exchanges=True,
        )
        return exchanges, chosen

    return of


def after(hypothesis, chosen):
    return Hypothesis(
        clusters=hypothesis.clusters,
        association=chosen.association,
        state=chosen.state,
        carried_models=chosen.carried_models,
    )


def test_newcomers_start_from_their_most_important_cluster(parent, associated):
    (_, training), chosen = associated(FedSoft(num_clusters=2, objective=Objective()), parent)
    zero, one = (cluster.key for cluster in parent.clusters)
    assert [request.start for request in training.requests] == [zero, one, zero]
    assert chosen.contribution_weights.tolist() == [[0.75, 0.25], [1e-4, 1.0], [0.5, 0.5]]
    assert chosen.association.labels.tolist() == [0, 1, 0]
    np.testing.assert_allclose(chosen.association.serving[1], [1e-4 / 1.0001, 1 / 1.0001])


def test_every_client_is_pulled_by_its_own_importances(parent, associated):
    (_, training), _ = associated(
        FedSoft(num_clusters=2, objective=Objective(), attraction=0.3), parent
    )
    regularizers = [request.objective.regularizers for request in training.requests]
    assert regularizers[0] == (Attraction(0.3, (0.75, 0.25)),)
    assert regularizers[1] == (Attraction(0.3, (1e-4, 1.0)),)
    keys = tuple(cluster.key for cluster in parent.clusters)
    assert all(request.references == (keys,) for request in training.requests)


def test_clients_go_on_from_their_own_models(linear, parent, associated):
    policy = FedSoft(num_clusters=2, objective=Objective())
    _, first = associated(policy, parent)
    (_, training), second = associated(policy, after(parent, first), present=("b",), round=1)
    (request,) = training.requests
    assert request.start == first.carried_models["own model of b"].key
    assert first.carried_models["own model of b"].mean(linear).tolist() == [1.0] * 8
    assert second.carried_models["own model of a"] is first.carried_models["own model of a"]
    assert second.carried_models["own model of b"].key != first.carried_models["own model of b"].key


def test_importances_hold_until_they_are_due(parent, associated):
    policy = FedSoft(num_clusters=2, objective=Objective(), every=2)
    _, first = associated(policy, parent, present=("a", "b"))
    (counting, _), _ = associated(policy, after(parent, first), round=1)
    assert [request.client for request in counting.requests] == ["c"]
    (counting, _), _ = associated(policy, after(parent, first), round=2)
    assert [request.client for request in counting.requests] == list(NAMES)


def test_who_says_nothing_feeds_nothing(parent, associated):
    _, chosen = associated(FedSoft(num_clusters=2, objective=Objective()), parent, silent=("b",))
    assert [training.client for training in chosen.trainings] == ["a", "c"]
    assert chosen.association.labels.tolist() == [0, -1, 0]
    exchanges, unanswered = associated(
        FedSoft(num_clusters=2, objective=Objective()), parent, silent=NAMES
    )
    assert len(exchanges) == 1
    assert unanswered.contribution_weights.shape == (0, 2)


def test_soft_serving_leaves_the_others_as_they_were():
    before = Association(NAMES, np.array([1, -1, 0]), 2)
    soft = softly_served(before, {"c": (1.0, 3.0)})
    assert soft.serving.tolist() == [[0, 1], [0, 0], [0.25, 0.75]]
    assert soft.labels.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_clusters": 0}, "num_clusters must be a whole number of at least 1, got 0"),
        ({"every": 0}, "every must be a whole number of at least 1, got 0"),
        ({"drawn": 0}, "drawn must be a whole number of at least 1 or None, got 0"),
        ({"attraction": 0.0}, "attraction must be positive and finite, got 0.0"),
        ({"smoothing": 0.0}, r"smoothing must lie in \(0, 1\], got 0.0"),
    ],
)
def test_bad_numbers(wrong, message):
    with pytest.raises(ValueError, match=message):
        FedSoft(**{"num_clusters": 2, "objective": Objective(), **wrong})


def test_bad_importances():
    with pytest.raises(ValueError, match="importances must be finite and at least 0"):
        Attraction(0.1, ())
    with pytest.raises(ValueError, match="weight must be positive and finite, got 0"):
        Attraction(0, (1.0,))


def test_each_cluster_draws_clients_by_importance_and_samples(parent, associated):
    """With equal samples cluster 0 draws a : c = 0.75 : 0.5, cluster 1 a : b : c = 1 : 4 : 2."""
    policy = FedSoft(num_clusters=2, objective=Objective(curvature="uniform"), drawn=1)
    times, rounds = np.zeros((3, 2)), 300
    for round in range(rounds):
        (_, training), chosen = associated(policy, parent, round=round)
        drawn = [request.client for request in training.requests]
        assert drawn == sorted({request.client for request in chosen.trainings})
        weights = chosen.contribution_weights
        assert set(np.unique(weights)) <= {0.0, 1.0}
        assert weights.sum(axis=0).tolist() == [1, 1]
        assert (weights.sum(axis=1) > 0).all()
        times[[NAMES.index(name) for name in drawn]] += weights
        assert (chosen.association.serving.sum(axis=1) == 1).all()
    np.testing.assert_allclose(times[:, 0] / rounds, [0.6, 0, 0.4], atol=0.09)
    np.testing.assert_allclose(times[:, 1] / rounds, [1 / 7, 4 / 7, 2 / 7], atol=0.09)


def test_all_clients_are_drawn_where_there_are_too_few(parent, associated):
    policy = FedSoft(num_clusters=2, objective=Objective(curvature="uniform"), drawn=9)
    _, chosen = associated(policy, parent)
    assert chosen.contribution_weights.tolist() == [[1, 1]] * 3
