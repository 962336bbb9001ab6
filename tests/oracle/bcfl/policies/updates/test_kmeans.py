"""FeSEM and WeCFL: K-means on trained models, against enumeration and a plain numpy statement."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

import bcfl
from bcfl.executors.batches import training_batches
from bcfl.policies.updates.centroids import weighted_kmeans
from bcfl.protocol.objective import Objective
from experiments.models import linear, mlp
from tests.recipes import built

OBJECTIVE = Objective(local_steps=6, batch_size=10, learning_rate=0.2, momentum=0.9)
POINTS = np.array([[0.0, 0], [1, 0], [4, 0], [5, 1], [9, 0]])


def scatter(points, weights, labels):
    """Weighted within-cluster sum of squares, and the weighted centroids."""
    cost, centroids = 0.0, []
    for label in sorted(set(labels)):
        chosen = np.equal(labels, label)
        centre = np.average(points[chosen], axis=0, weights=weights[chosen])
        cost += float(weights[chosen] @ ((points[chosen] - centre) ** 2).sum(1))
        centroids.append(centre)
    return cost, centroids


def best_partitions(points, weights, num_clusters):
    """Costs and canonical labels of all partitions into exactly so many clusters, best first."""
    found = []
    for labels in itertools.product(range(num_clusters), repeat=len(points)):
        first_seen = list(dict.fromkeys(labels))
        if first_seen == list(range(num_clusters)):
            found.append((scatter(points, weights, labels)[0], labels))
    return sorted(found)


def canonical(labels):
    names = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return tuple(names[label] for label in labels)


@pytest.mark.parametrize(
    ("weights", "labels", "cost", "next_best", "centroids"),
    [
        ((1, 1, 1, 1, 1), (0, 0, 1, 1, 1), 15.166667, 17.166667, ((0.5, 0), (6, 0.333333))),
        ((10, 10, 10, 10, 200), (0, 0, 0, 0, 1), 177.5, 248.571429, ((2.5, 0.25), (9, 0))),
        (
            (200, 10, 10, 10, 10),
            (0, 0, 1, 1, 1),
            156.190476,
            243.636364,
            ((0.047619, 0), (6, 0.333333)),
        ),
        (
            (10, 10, 10, 100, 100),
            (0, 0, 0, 0, 1),
            366.153846,
            586.439394,
            ((4.230769, 0.769231), (9, 0)),
        ),
    ],
)
def test_weighted_kmeans_by_hand(weights, labels, cost, next_best, centroids):
    weights = np.array(weights, dtype=float)
    enumerated = best_partitions(POINTS, weights, 2)
    assert enumerated[0][0] == pytest.approx(cost, abs=5e-7)
    assert enumerated[1][0] == pytest.approx(next_best, abs=5e-7)
    for seed in range(5):
        found = weighted_kmeans(POINTS, weights, 2, seed)
        assert canonical(found.tolist()) == labels == enumerated[0][1]
        total, centres = scatter(POINTS, weights, labels)
        assert total == pytest.approx(cost, abs=5e-7)
        np.testing.assert_allclose(centres, centroids, atol=5e-7)


@pytest.mark.parametrize("seed", range(6))
def test_weighted_kmeans_finds_the_best_partition(seed):
    random = np.random.default_rng(seed)
    points, weights = random.normal(size=(8, 3)), random.integers(5, 60, size=8).astype(float)
    found = weighted_kmeans(points, weights, 3, seed)
    assert canonical(found.tolist()) == best_partitions(points, weights, 3)[0][1]


def test_fewer_distinct_points_than_clusters():
    points = np.repeat([[0.0, 1], [2, 3]], [3, 2], axis=0)
    assert canonical(weighted_kmeans(points, np.ones(5), 4, 0).tolist()) == (0, 0, 0, 1, 1)


def federation(clients, name, model, num_clusters=3, averaging="equal", **options):
    chosen = dict(num_clusters=num_clusters, objective=OBJECTIVE, averaging=averaging)
    method = built(name, **chosen)
    return bcfl.Federation(clients, model, method, seed=2, device="cpu", **options)


@pytest.mark.parametrize("size", [32, 27])
@pytest.mark.parametrize("options", [{}, {"client_fraction": 0.8, "drop_out": 0.2}])
def test_wecfl_with_equal_sizes_is_fesem(
    digits_clients, states_of, assert_same_bits, size, options
):
    """Up to ties of K-means within rounding, which generic data do not have."""
    clients, model = digits_clients((size,) * 8), mlp(64, 12, 10)
    pairs = zip(
        states_of(federation(clients, "wecfl", model, **options), 4),
        states_of(federation(clients, "fesem", model, averaging="samples", **options), 4),
        strict=True,
    )
    for (state, _), (twin, _) in pairs:
        assert_same_bits(state.hypotheses, twin.hypotheses)
    plain = [after for after, _ in states_of(federation(clients, "fesem", model, **options), 4)][-1]
    pairs = zip(plain.hypotheses.best.clusters, state.hypotheses.best.clusters, strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one.mean(model), other.mean(model), rtol=0, atol=1e-5)


def test_with_unequal_sizes_they_differ(digits_clients):
    clients, model = digits_clients((15, 15, 15, 200, 15, 200)), mlp(64, 12, 10)
    runs = [federation(clients, name, model).run(3).hypotheses.best for name in ("wecfl", "fesem")]
    assert [c.key for c in runs[0].clusters] != [c.key for c in runs[1].clusters]


@pytest.mark.parametrize("name", ["wecfl", "fesem"])
def test_rounds_against_numpy(turned_clients, states_of, softmax, name):
    """Train from the served model, partition optimally, average: equations 3.2 and 3.4."""
    clients, model = turned_clients((20, 33, 12, 41, 20, 27)), linear(4, 3)
    one = federation(clients, name, model, dtype=torch.float64)
    data = softmax.arrays(clients)
    counts = np.array([float(len(labels)) for _, labels in data.values()])
    start = one.initial_state().hypotheses.best.clusters[0].mean(model)
    served = dict.fromkeys(data, softmax.weights(start, 3))
    for round, (state, _) in enumerate(states_of(one, 3)):
        local = np.stack(
            [
                softmax.trained(
                    served[client],
                    data[client],
                    training_batches(len(data[client][1]), 10, 6, 2, round, client).numpy(),
                    0.2,
                    0.9,
                )
                for client in data
            ]
        )
        points = local.reshape(len(data), -1)
        weights = counts if name == "wecfl" else np.ones_like(counts)
        labels = best_partitions(points, weights, 3)[0][1]
        means = [
            np.tensordot(weights[chosen] / weights[chosen].sum(), local[chosen], axes=1)
            for chosen in (np.equal(labels, k) for k in range(3))
        ]
        served = {client: means[label] for client, label in zip(data, labels, strict=True)}
        best = state.hypotheses.best
        assert canonical(best.association.labels.tolist()) == labels
        for client, expected in served.items():
            ours = best.clusters[best.association.label(client)].mean(model)
            np.testing.assert_allclose(softmax.weights(ours, 3), expected, rtol=0, atol=1e-11)


def test_clusters_keep_their_names_while_they_keep_their_clients(turned_clients, states_of):
    """K-means knows no names: a cluster is called after the one it shares most clients with."""
    clients = turned_clients((40,) * 9)
    one = federation(clients, "wecfl", linear(4, 3), dtype=torch.float64)
    seen = [state.hypotheses.best.association.labels for state, _ in states_of(one, 5)]
    for before, after in itertools.pairwise(seen):
        shared = [
            sum(np.equal(before, order[np.asarray(after)]))
            for order in map(np.array, itertools.permutations(range(3)))
        ]
        assert sum(np.equal(before, after)) == max(shared)


def test_an_empty_cluster_keeps_its_model():
    """Three clients with the same single sample end at one model: two clusters cannot be filled."""
    sample = (np.ones((1, 4)), np.array([1]))
    clients = [bcfl.ClientData.from_arrays(f"c{index}", sample) for index in range(3)]
    one = federation(clients, "wecfl", linear(4, 3))
    start = one.initial_state().hypotheses.best.clusters[0]
    best = one.run(1).hypotheses.best
    (used,) = set(best.association.labels)
    assert [c.key == start.key for c in best.clusters] == [k != used for k in range(3)]


@pytest.mark.parametrize("dimensions", [13, 5000, 9000])
def test_more_dimensions_than_points_change_nothing(dimensions):
    """Against scikit-learn in all dimensions; copies of a point stay together."""
    generator = np.random.default_rng(dimensions)
    centres = generator.normal(size=(3, dimensions))
    points = 100 + centres[generator.integers(3, size=12)]
    points += generator.normal(scale=0.8, size=points.shape)
    points[7], points[9] = points[2], points[2]
    weights = generator.uniform(1, 5, size=12)
    found = weighted_kmeans(points, weights, 4, 1)
    expected = KMeans(4, n_init=10, random_state=1, tol=0).fit_predict(
        points, sample_weight=weights
    )
    assert found.tolist() == expected.tolist()
    assert found[7] == found[9] == found[2]
