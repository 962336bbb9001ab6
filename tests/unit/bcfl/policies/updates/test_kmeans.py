import itertools

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import ClusterSize, KMeansAssociation
from bcfl.policies.updates.centroids import (
    distances_to_cavities,
    distances_to_centroids,
    moved_to_nearest_cavities,
    weighted_kmeans,
)
from bcfl.policies.updates.kmeans import relabel
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def parent(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return Hypothesis(clusters=clusters, association=Association(NAMES, np.array([0, 1, 1, -1]), 2))


def trained(value, samples):
    return Trained(
        mean=torch.full((8,), float(value)),
        buffers=torch.empty(0),
        curvature=torch.ones(()),
        num_samples=samples,
    )


@pytest.fixture
def associated(parent, context):
    """Let a policy associate clients whose trainings give (value, number of samples)."""

    def of(policy, values):
        (chosen,), (exchange,) = drive(
            policy.associate(parent, context(NAMES)),
            lambda r: trained(*values[r.client]) if r.client in values else None,
            return_exchanges=True,
        )
        return exchange, chosen

    return of


def test_clients_train_from_the_model_that_serves_them_and_newcomers_from_the_largest(
    parent, associated
):
    values = {"a": (0, 1), "b": (9, 1), "c": (9.5, 1), "d": (0.5, 1)}
    exchange, chosen = associated(KMeansAssociation(num_clusters=2, objective=Objective()), values)
    zero, one = (posterior.key for posterior in parent.clusters)
    assert exchange.requests == tuple(
        Train(c, k, Objective()) for c, k in zip(NAMES, (zero, one, one, one), strict=True)
    )
    assert chosen.association.labels.tolist() == [0, 1, 1, 0]
    assert set(chosen.answers) == set(exchange.requests)


def test_weights_by_samples_pull_centres_and_equal_weights_do_not(associated):
    """Two far points against one heavy point: only by samples is the heavy one alone."""
    values = {"a": (0, 1), "b": (3, 1), "c": (6, 1), "d": (7, 1)}
    _, equal = associated(
        KMeansAssociation(num_clusters=2, objective=Objective(), weighting="equal"), values
    )
    assert len(set(equal.association.labels[2:])) == 1
    heavy = {**values, "c": (6, 1000), "d": (7, 1000)}
    _, weighted = associated(
        KMeansAssociation(num_clusters=2, objective=Objective(), weighting="samples"), heavy
    )
    assert weighted.association.labels[2] != weighted.association.labels[3]
    _, unweighted = associated(
        KMeansAssociation(num_clusters=2, objective=Objective(), weighting="equal"), heavy
    )
    assert (unweighted.association.labels == equal.association.labels).all()


def test_those_who_do_not_train_keep_their_place(associated):
    _, chosen = associated(
        KMeansAssociation(num_clusters=2, objective=Objective()), {"a": (0, 1), "c": (9, 1)}
    )
    assert chosen.association.labels.tolist() == [0, 1, 1, -1]
    assert [t.client for t in chosen.trainings] == ["a", "c"]
    _, unanswered = associated(KMeansAssociation(num_clusters=2, objective=Objective()), {})
    assert unanswered.association.labels.tolist() == [0, 1, 1, -1]


def test_fewer_distinct_points_than_clusters_leave_clusters_empty():
    labels = weighted_kmeans(np.zeros((5, 3)), np.ones(5), 3, 0)
    assert labels.tolist() == [0] * 5
    assert weighted_kmeans(np.ones((1, 2)), np.ones(1), 4, 0).tolist() == [0]


def test_new_clusters_take_the_names_of_those_they_share_most_clients_with():
    before = Association(NAMES, np.array([0, 0, 1, -1]), 3)
    assert relabel(np.array([2, 2, 0, 1]), before, NAMES).tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_clusters": 0}, "num_clusters must be a whole number of at least 1, got 0"),
        ({"weighting": "size"}, "weighting must be 'samples' or 'equal', got 'size'"),
    ],
)
def test_a_policy_names_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        KMeansAssociation(**{"num_clusters": 2, "objective": Objective(), **arguments})


@pytest.mark.parametrize("weighting", ["samples", "equal"])
def test_bounds_are_kept_at_the_least_summed_distance(associated, weighting):
    """Against all associations of four clients to two clusters of two each."""
    policy = KMeansAssociation(
        num_clusters=2, objective=Objective(), weighting=weighting, cluster_size=ClusterSize(2, 2)
    )
    values = {"a": (0.0, 9), "b": (0.2, 1), "c": (0.3, 4), "d": (5.0, 2)}
    _, chosen = associated(policy, values)
    places = np.array([values[name][0] for name in NAMES])
    weights = np.array([values[name][1] if weighting == "samples" else 1 for name in NAMES])
    near = np.average(places[:3], weights=weights[:3])
    costs = {
        pair: sum(weights[i] * (places[i] - (5.0 if i in pair else near)) ** 2 for i in range(4))
        for pair in itertools.combinations(range(4), 2)
    }
    labels = chosen.association.labels
    together = tuple(np.flatnonzero(labels == labels[3]))
    assert chosen.association.sizes.tolist() == [2, 2]
    assert together == min(costs, key=costs.get)


def test_bounds_that_do_not_fit_the_clients_are_refused():
    with pytest.raises(ValueError, match="does not fit 4 clients in 2 clusters"):
        KMeansAssociation(
            num_clusters=2, objective=Objective(), cluster_size=ClusterSize(3, 3)
        ).check(2, 4, 4)


def test_a_cavity_is_the_centroid_of_the_others():
    random = np.random.default_rng(0)
    points, weights = random.normal(size=(7, 3)), random.uniform(1, 5, size=7)
    labels, origins = np.array([0, 0, 0, 1, 1, 2, 0]), random.normal(size=(4, 3))
    found = distances_to_cavities(points, weights, labels, origins)
    for row, cluster in itertools.product(range(7), range(4)):
        others = [i for i in np.flatnonzero(labels == cluster) if i != row]
        if cluster == 3:  # empty: the centroid of all points
            others = list(range(7))
        centre = np.average(points[others], axis=0, weights=weights[others]) if others else None
        centre = origins[cluster] if centre is None else centre
        assert found[row, cluster] == pytest.approx(((points[row] - centre) ** 2).sum())


def test_clients_move_to_the_nearest_cavity():
    """The point at 4 is closer to its centroid at 6, but closer to 0.7 than to 8, the other's."""
    points = np.array([[0.0], [0.9], [1.1], [4.0], [8.0]])
    labels, weights = np.array([0, 0, 0, 1, 1]), np.ones(5)
    assert distances_to_centroids(points, weights, labels, 2).argmin(axis=1).tolist() == [*labels]
    moved = moved_to_nearest_cavities(points, weights, labels, np.array([[0.0], [7.0]]))
    assert moved.tolist() == [0, 0, 0, 0, 1]
    assert labels.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("cluster_size", [(0, None), (1, 3)])
def test_the_policy_measures_clients_against_cavities(associated, cluster_size):
    """Local models start at clusters of small means, so that the lone client keeps its own."""
    values = {"a": (-3.0, 1), "b": (-2.5, 1), "c": (0.1, 1), "d": (3.0, 1)}
    for scored_by, together in (("cluster", False), ("cavity", True)):
        policy = KMeansAssociation(
            num_clusters=2,
            objective=Objective(),
            weighting="equal",
            scored_by=scored_by,
            cluster_size=ClusterSize(*cluster_size),
        )
        association = associated(policy, values)[1].association
        assert (association.label("c") == association.label("a")) is together


def test_only_known_ways_of_measuring():
    with pytest.raises(ValueError, match="scored_by must be one of cluster, cavity, got 'mean'"):
        KMeansAssociation(num_clusters=2, objective=Objective(), scored_by="mean")
