"""Weights of K-means and of its centres in FeSEM, WeCFL and their additive forms.

Ma (2023), equation 3.2: FeSEM's centres are plain means; equations 3.3 and 3.4: WeCFL weighs both
by samples. Ma et al. (2023), equations 10 and 11: so does FeSEM with additive models.
"""

import itertools

import numpy as np
import pytest

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0], [5.0, 1.0], [9.0, 0.0]])
COUNTS = np.array([10, 10, 10, 100, 100])
NAMES = [f"c{index}" for index in range(5)]
EQUAL = np.ones(5)


def best_centres(weights):
    """Clusters of the least weighted squared distance, by trying all; and their centres."""
    best = None
    for labels in itertools.product(range(2), repeat=len(POINTS)):
        inside = [np.flatnonzero(np.array(labels) == k) for k in range(2)]
        if not all(map(len, inside)):
            continue
        centres = [np.average(POINTS[rows], axis=0, weights=weights[rows]) for rows in inside]
        cost = sum(
            weights[row] * ((POINTS[row] - centre) ** 2).sum()
            for rows, centre in zip(inside, centres, strict=True)
            for row in rows
        )
        if best is None or cost < best[0]:
            best = cost, inside, centres
    return best[1:]


@pytest.mark.parametrize(
    ("name", "weights", "block"),
    [
        ("wecfl", COUNTS, ""),
        ("wecfl-cam", COUNTS, "own"),
        ("fesem", EQUAL, ""),
        ("fesem-cam", COUNTS, "own"),
    ],
)
def test_clusters_and_centres(
    make_client, perceptron, build_method, watch, placed, name, weights, block
):
    recipe = build_method(name, num_clusters=2, local_steps=1, warm_up=1)
    model = recipe.architecture(perceptron) if block else perceptron
    change, place = placed(model, dict(zip(NAMES, POINTS.tolist(), strict=True)), block)
    clients = [make_client(*pair) for pair in zip(NAMES, COUNTS.tolist(), strict=True)]
    hypotheses, _, _ = watch(clients, perceptron, recipe, 2, change=change)
    inside, centres = best_centres(weights)
    labels = hypotheses.best.association.labels
    for rows, centre in zip(inside, centres, strict=True):
        assert np.flatnonzero(labels == labels[rows[0]]).tolist() == rows.tolist()
        mean = hypotheses.best.clusters[labels[rows[0]]].mean(model)[place]
        np.testing.assert_allclose(mean.numpy(), centre, rtol=1e-5, atol=1e-5)
