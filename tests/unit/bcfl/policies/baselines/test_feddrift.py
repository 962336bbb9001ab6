import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import Continue, Given
from bcfl.policies.baselines.feddrift import FedDrift
from bcfl.policies.baselines.linkage import cluster_distances, complete_linkage
from bcfl.protocol.statistics.loss import LossSum

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def associated(context):
    """Let a policy associate; `losses` gives each client's mean loss with each cluster."""

    def of(policy, hypothesis, losses, present=NAMES, round=0, samples=2):
        keys = [cluster.key for cluster in hypothesis.clusters]

        def answer(r):
            row = losses.get(r.client)
            if row is not None:
                sums = {key: samples * row[keys.index(key)] for key in r.models}
                return {key: LossSum(total, 0.0, samples) for key, total in sums.items()}

        steps = policy.associate(hypothesis, context(present, round))
        (chosen,), exchanges = drive(steps, answer, return_exchanges=True)
        return [request for exchange in exchanges for request in exchange.requests], chosen

    return of


@pytest.fixture
def parent(linear, newborn):
    """Clusters {a, b} and {c, d} after a first time step."""
    clusters = (newborn(linear, 0), newborn(linear, 1))
    association = Association(NAMES, np.array([0, 0, 1, 1]), 2)
    return Hypothesis(
        clusters=clusters, association=association, state={"losses": dict.fromkeys(NAMES, 0.3)}
    )


APART = {"a": (0.3, 2.0), "b": (0.3, 2.0), "c": (2.0, 0.3), "d": (2.0, 0.3)}


def test_each_client_of_the_first_round_opens_a_cluster(linear, newborn, associated):
    first = Hypothesis(clusters=(newborn(linear),), association=Association.unseen(NAMES, 1))
    losses = {client: (2.0,) for client in "acd"}
    _, chosen = associated(FedDrift(objective=Objective()), first, losses, "acd")
    assert chosen.association.labels.tolist() == [0, -1, 1, 2]
    assert chosen.origins == (Continue(0), *(Continue(0, is_copy=True),) * 2)
    assert chosen.contribution_weights.tolist() == np.eye(3).tolist()
    assert chosen.state == {"losses": {"a": 2.0, "c": 2.0, "d": 2.0}, "step": 0}
    _, one = associated(FedDrift(objective=Objective(), start="one"), first, losses, "acd")
    assert one.association.labels.tolist() == [0, -1, 0, 0]


def test_without_participants_no_cluster_is_opened(linear, newborn, associated):
    first = Hypothesis(clusters=(newborn(linear),), association=Association.unseen(NAMES, 1))
    _, chosen = associated(FedDrift(objective=Objective()), first, {})
    assert chosen.association.num_clusters == 1
    assert not chosen.trainings


def test_unlike_clusters_stay_and_alike_ones_merge_by_samples(linear, parent, associated):
    policy = FedDrift(objective=Objective(), every=2)
    _, apart = associated(policy, parent, APART, round=2)
    assert apart.origins == (Continue(0), Continue(1))
    alike = {"a": (0.3, 0.4), "b": (0.3, 0.4), "c": (0.45, 0.4), "d": (0.3, 0.4)}
    _, merged = associated(policy, parent, alike, round=2)
    (origin,) = merged.origins
    assert isinstance(origin, Given)
    first, second = (cluster.mean(linear) for cluster in parent.clusters)
    np.testing.assert_allclose(origin.model.mean(linear), 0.75 * first + 0.25 * second, rtol=1e-6)
    assert merged.association.labels.tolist() == [0] * 4
    assert merged.models == (origin.model,)
    assert {training.start for training in merged.trainings} == {origin.model.key}


def test_who_drifts_opens_a_cluster_from_its_best_model_that_does_not_merge_at_once(
    parent, associated
):
    losses = {**APART, "b": (2.0, 0.9), "d": (0.9, 2.0)}
    _, alone = associated(FedDrift(objective=Objective(), every=2), parent, losses, round=2)
    assert alone.association.labels.tolist() == [0, 2, 1, 3]
    opened = Continue(1, is_copy=True), Continue(0, is_copy=True)
    assert alone.origins == (Continue(0), Continue(1), *opened)
    assert alone.state["losses"] == {"a": 0.3, "b": 0.9, "c": 0.3, "d": 0.9}
    eager = FedDrift(objective=Objective(), every=2, drifted="together")
    _, together = associated(eager, parent, losses, round=2)
    assert together.association.labels.tolist() == [0, 2, 1, 2]
    bound = FedDrift(objective=Objective(), every=2, max_clusters=3)
    _, few = associated(bound, parent, losses, round=2)
    assert few.association.labels.tolist() == [0, 2, 1, 0]


def test_clusters_without_clients_end(parent, associated):
    policy = FedDrift(objective=Objective(), every=2, drifted="together")
    losses = {client: (0.5, 0.4) for client in NAMES}
    _, chosen = associated(policy, parent, losses, round=2)
    assert chosen.origins == (Continue(1),)
    assert chosen.association.labels.tolist() == [0] * 4


def test_between_time_steps_clusters_only_train_and_newcomers_join_the_best(
    linear, newborn, associated
):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    parent = Hypothesis(
        clusters=clusters, association=Association(NAMES, np.array([0, 1, 1, -1]), 2)
    )
    asked, chosen = associated(FedDrift(objective=Objective(), every=2), parent, APART, round=1)
    assert [request.client for request in asked] == ["d"]
    assert chosen.association.labels.tolist() == [0, 1, 1, 1]
    assert chosen.origins == (Continue(0), Continue(1))
    assert len(chosen.trainings) == 4


def test_clusters_of_absent_clients_neither_merge_nor_end(parent, associated):
    policy = FedDrift(objective=Objective(), every=2)
    losses = {"a": (0.3, 0.4), "b": (0.3, 0.4)}
    _, chosen = associated(policy, parent, losses, "ab", round=2)
    assert chosen.association.labels.tolist() == [0, 0, 1, 1]
    assert chosen.origins == (Continue(0), Continue(1))


def test_unknown_losses_are_infinitely_far():
    losses = np.array([[0.1, np.nan, 0.1], [0.1, np.nan, 0.1], [0.1, np.nan, 0.1]])
    distances = cluster_distances(losses)
    assert np.isinf(distances[0, 1])
    assert distances[0, 2] == 0
    assert complete_linkage(distances, 0.5).tolist() == [0, 1, 0]
    assert complete_linkage(np.zeros((1, 1)), 0.5).tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": 0.0}, "delta must be positive and finite, got 0.0"),
        ({"every": 0}, "every must be above 0, got 0"),
        ({"every": 1.5}, "every must be a whole number"),
        ({"start": "none"}, "start must be 'each' or 'one', got 'none'"),
        ({"drifted": "never"}, "drifted must be 'alone' or 'together', got 'never'"),
        ({"max_clusters": 0}, "max_clusters must be a whole number of at least 1 or None, got 0"),
    ],
)
def test_bad_numbers(wrong, message):
    with pytest.raises(ValueError, match=message):
        FedDrift(objective=Objective(), **wrong)
