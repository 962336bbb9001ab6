"""Clusterings of update distances that are degenerate: tied, equal up to rounding, or all zero.

Reported to neighbouring projects: affinity propagation labels what it did not converge on.
"""

import warnings

import numpy as np
import pytest
from sklearn.cluster import AffinityPropagation
from sklearn.exceptions import ConvergenceWarning

from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
)
from bcfl.policies.updates.update_similarity import cosine_distances


def symmetric(values):
    values = (values + values.T) / 2
    np.fill_diagonal(values, 0)
    return values


def two_groups(n, within, across, noise=0.0):
    groups = np.arange(n) % 2
    distances = np.where(groups[:, None] == groups, within, across)
    return symmetric(np.abs(distances + noise * np.random.default_rng(0).normal(size=(n, n))))


def converges(distances):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AffinityPropagation(affinity="precomputed", random_state=0).fit(-distances)
    return not any(issubclass(w.category, ConvergenceWarning) for w in caught)


def count(method, distances):
    return len(set(method.groups(distances.copy(), 0).tolist()))


ALL = {
    "hdbscan": HDBSCANClustering(),
    "hdbscan-nearest": HDBSCANClustering(noise="nearest"),
    "mean-shift": MeanShiftClustering(),
    "affinity": AffinityClustering(),
    "k-means": KMeansClustering(3),
    "agglomerative": AgglomerativeClustering(0.5),
}


def test_affinity_propagation_that_does_not_converge_keeps_all_together():
    distances = two_groups(40, 0.1, 1.5, noise=1e-3)
    assert not converges(distances)
    assert count(AffinityClustering(), distances) == 1


@pytest.mark.parametrize("n", [6, 10, 16, 20])
def test_affinity_propagation_finds_two_separate_groups(n):
    distances = two_groups(n, 0.1, 1.5, noise=1e-3)
    assert converges(distances)
    assert count(AffinityClustering(), distances) == 2


@pytest.mark.parametrize("n", [30, 10])
def test_affinity_propagation_of_tied_groups_finds_both_or_keeps_all_together(n):
    distances = two_groups(n, 0.1, 1.5)
    assert count(AffinityClustering(), distances) == (2 if converges(distances) else 1)


@pytest.mark.parametrize("n", [3, 5, 7, 9, 10, 31])
def test_affinity_propagation_splits_no_equal_clients(n):
    distances = two_groups(n, 0.0, 2.0)
    found = AffinityClustering().groups(distances, 0)
    expected = np.arange(n) % 2 if converges(distances) else np.zeros(n)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["hdbscan", "hdbscan-nearest", "agglomerative"])
@pytest.mark.parametrize(("within", "across"), [(0.1, 1.5), (0.0, 2.0)])
def test_two_tied_groups_are_found(name, within, across):
    found = ALL[name].groups(two_groups(30, within, across), 0)
    np.testing.assert_array_equal(found, np.arange(30) % 2)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n", [7, 10, 30])
@pytest.mark.parametrize("name", ["hdbscan", "mean-shift", "affinity", "agglomerative"])
def test_equal_clients_form_one_group(name, n):
    assert count(ALL[name], np.zeros((n, n))) == 1


@pytest.mark.parametrize(
    ("name", "n"),
    [
        *(("agglomerative", n) for n in (7, 10, 30)),
        *(("hdbscan", 30), ("mean-shift", 30)),
        *((n, k) for n in ("hdbscan", "mean-shift") for k in (7, 10)),
        *(("affinity", k) for k in (7, 10, 30)),
    ],
)
def test_clients_equal_up_to_rounding_form_one_group(name, n):
    noise = np.random.default_rng(0).normal(size=(n, n))
    assert count(ALL[name], symmetric(1e-16 * np.abs(noise))) == 1


@pytest.mark.parametrize("n", [2, 5, 10])
@pytest.mark.parametrize("name", ALL)
def test_updates_of_zero_length_are_grouped_without_an_error(name, n):
    distances = cosine_distances(np.zeros((n, n)))
    assert np.isfinite(distances).all()
    assert len(ALL[name].groups(distances, 0)) == n


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n", [7, 10, 16, 31])
@pytest.mark.parametrize("name", ALL)
def test_rounding_changes_no_grouping_of_two_groups(name, n):
    """Clients that are equal within their group, with and without noise of rounding."""
    distances = two_groups(n, 0.0, 1.5)
    noise = np.random.default_rng(0).uniform(-2e-16, 2e-16, size=(n, n))
    noisy = symmetric(np.abs(distances + noise))
    exact = ALL[name].groups(distances, 0)
    np.testing.assert_array_equal(ALL[name].groups(noisy, 0), exact)


@pytest.mark.parametrize("seed", range(20))
def test_affinity_propagation_of_random_distances_converges_or_keeps_all_together(seed):
    distances = symmetric(np.random.default_rng(seed).uniform(0, 2, size=(12, 12)))
    found = count(AffinityClustering(), distances)
    assert found >= 1 if converges(distances) else found == 1
