"""Temperature, clusterers, bipartitions and decomposed cosines, against numbers worked out apart.

The numbers were computed in plain numpy and scikit-learn from the papers' formulas.
"""

import itertools

import numpy as np
import pytest
import torch

from bcfl.policies.updates.bipartition import bipartition
from bcfl.policies.updates.clustering_temperature import clustering_temperature
from bcfl.policies.updates.fedgroup import group
from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
)
from bcfl.policies.updates.update_similarity import (
    cosine_distances,
    cosine_similarities,
    cosine_with_mean,
    decomposed_cosines,
    inner_products,
    mean_cosine_differences,
    norm_of_mean,
    norms,
)

SIX = ((10, 1, 0), (9, 2, 1), (10, 0, 2), (0, 1, 10), (1, 2, 9), (2, 0, 10))
ANGLES = np.deg2rad([0, 2, 5, 60, 62, 65, 180])
SEVEN = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
SATTLER = ((-2, 4, -4), (-4, 3, -3), (3, -1, 1), (0, 0, 3), (2, 1, 3), (0, -4, -2))
COLD_START = ((1, 0, 0.1, 0), (0.9, 0.1, 0, 0.1), (0, 1, 0.2, -0.1), (0.1, 0.8, 0, 0.3))


def products(vectors):
    """Inner products of updates that all start at a point that isn't zero."""
    vectors = torch.tensor(np.array(vectors, dtype=float))
    start = torch.linspace(-1, 2, vectors.shape[1], dtype=torch.float64)
    return inner_products([start] * len(vectors), list(start + vectors))


def parts(labels, first=1):
    """Groups as a set of sets of numbers."""
    found = {}
    for index, label in enumerate(labels):
        found.setdefault(int(label), set()).add(index + first)
    return {frozenset(part) for part in found.values()}


def sets(*groups):
    return {frozenset(one) for one in groups}


@pytest.mark.parametrize(
    ("vectors", "entries", "norm", "temperature"),
    [
        (
            ((1, 0), (1, 1), (-1, 2)),
            {(0, 1): 0.292893, (0, 2): 1.447214, (1, 2): 0.683772},
            2.301199,
            0.469730,
        ),
        (
            ((1, 0, 0), (2, 1, 0), (0, -1, 1), (-1, 0, 1)),
            {
                (0, 1): 0.105573,
                (0, 2): 1.0,
                (0, 3): 1.707107,
                (1, 2): 1.316228,
                (1, 3): 1.632456,
                (2, 3): 0.5,
            },
            4.140707,
            0.597660,
        ),
        (((1, 2), (-2, -4)), {(0, 1): 2.0}, 2.828427, 1.0),
        (((1, 2), (2, 4)), {(0, 1): 0.0}, 0.0, 0.0),
    ],
)
def test_distances_and_temperature(vectors, entries, norm, temperature):
    distances = cosine_distances(products(vectors))
    for pair, value in entries.items():
        assert distances[pair] == distances[pair[::-1]] == pytest.approx(value, abs=5e-7)
    assert not np.diagonal(distances).any()
    assert np.linalg.norm(distances) == pytest.approx(norm, abs=5e-7)
    assert clustering_temperature(distances) == pytest.approx(temperature, abs=5e-7)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, 7.0])
def test_temperature_is_the_norm_over_its_largest_value(norm):
    distances = cosine_distances(products(np.random.default_rng(3).normal(size=(6, 4))))
    largest = (6 * 5 * 2**norm) ** (1 / norm)
    wanted = (np.abs(distances) ** norm).sum() ** (1 / norm) / largest
    assert clustering_temperature(distances, norm) == pytest.approx(wanted, rel=1e-12)


def test_six_clients_in_every_clustering():
    distances = cosine_distances(products(SIX))
    assert clustering_temperature(distances) == pytest.approx(0.308776, abs=5e-7)
    halves = sets({1, 2, 3}, {4, 5, 6})
    for one in (
        HDBSCANClustering(2 / 6),
        HDBSCANClustering(3 / 6),
        KMeansClustering(2),
        AffinityClustering(),
    ):
        assert parts(one.groups(distances, 0)) == halves
    released = AffinityClustering("distance").groups(distances, 0)
    assert parts(released) == sets({1, 5, 6}, {2, 3, 4})
    assert len(parts(MeanShiftClustering().groups(distances, 0))) == 6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_seven_directions_in_every_clustering(seed):
    distances = cosine_distances(products(SEVEN))
    assert clustering_temperature(distances) == pytest.approx(0.496280, abs=5e-7)
    three = sets({1, 2, 3}, {4, 5, 6}, {7})
    for one in (
        HDBSCANClustering(2 / 7),
        HDBSCANClustering(3 / 7),
        KMeansClustering(3),
        MeanShiftClustering(),
        AffinityClustering(),
    ):
        assert parts(one.groups(distances, seed)) == three
    assert parts(KMeansClustering(2).groups(distances, seed)) == sets({1, 2, 3, 4, 5, 6}, {7})
    assert len(parts(AffinityClustering("distance").groups(distances, seed))) == 1
    nearest = HDBSCANClustering(2 / 7, noise="nearest").groups(distances, seed)
    assert parts(nearest) == sets({1, 2, 3}, {4, 5, 6, 7})


@pytest.mark.parametrize(
    ("vectors", "right", "released"),
    [
        (
            ((1, 0, 0.1), (1, 0.1, 0), (0, 1, 0.1), (0.1, 1, 0)),
            ({1, 2}, {3, 4}),
            ({1, 3}, {2}, {4}),
        ),
        (((1, 0.01, 0), (1, 0, 0.01), (1, 0.02, 0.01)), ({1, 2, 3},), ({1}, {2}, {3})),
        (
            ((1, 0), (-1, 0.1), (0.9, 0.1), (-0.9, 0.2)),
            ({1, 3}, {2, 4}),
            ({1, 2, 3, 4},),
        ),
    ],
)
def test_agglomerative_clustering_of_briggs(vectors, right, released):
    distances = cosine_distances(products(vectors))
    assert parts(AgglomerativeClustering(0.05).groups(distances, 0)) == sets(*right)
    printed = AgglomerativeClustering(0.05, reads="similarity")
    assert parts(printed.groups(distances, 0)) == sets(*released)


def test_sattlers_six_updates():
    found = products(SATTLER)
    upper = [0.914659, -0.703526, -0.666667, -0.534522, -0.298142]
    upper += [-0.930758, -0.514496, -0.641689, -0.230090]
    upper += [0.301511, 0.644658, 0.134840]
    upper += [0.801784, -0.447214, -0.597614]
    cosines = cosine_similarities(found)
    np.testing.assert_allclose(cosines[np.triu_indices(6, 1)], upper, atol=5e-7)
    assert norm_of_mean(found) == pytest.approx(0.623610, abs=5e-7)
    assert norms(found).max() == pytest.approx(6.0)
    assert parts(bipartition(found, "single")) == sets({1, 2}, {3, 4, 5, 6})
    assert parts(bipartition(found, "complete")) == sets({1, 2, 6}, {3, 4, 5})


def across(cosines, half):
    other = [i for i in range(len(cosines)) if i not in half]
    return cosines[np.ix_(list(half), other)].max()


def test_the_largest_similarity_across_sattlers_halves():
    cosines = cosine_similarities(products(SATTLER))
    assert across(cosines, {0, 1}) == pytest.approx(-0.230090, abs=1e-6)
    assert across(cosines, {0, 1, 5}) == pytest.approx(0.134840, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_single_linkage_is_the_best_of_all_bipartitions(seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(int(random.integers(3, 9)), 4))
    scaled = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = scaled @ scaled.T
    count = len(vectors)
    halves = [
        half for size in range(1, count) for half in itertools.combinations(range(count), size)
    ]
    best = min(across(cosines, half) for half in halves)
    found = np.flatnonzero(bipartition(products(vectors)) == 0)
    assert across(cosines, set(found.tolist())) == pytest.approx(best, abs=1e-12)


def test_decomposed_cosines_of_a_cold_start():
    found = products(COLD_START)
    singular = np.sqrt(np.linalg.eigvalsh(found)[::-1])
    np.testing.assert_allclose(singular, [1.400735, 1.247246, 0.332777, 0.039733], atol=5e-7)
    cosines = decomposed_cosines(found, 2)
    first_row_positive = cosines * np.sign(cosines[0])
    np.testing.assert_allclose(
        first_row_positive,
        [
            (0.824717, 0.559568),
            (0.880677, 0.468659),
            (0.553495, -0.808664),
            (0.646909, -0.707526),
        ],
        atol=5e-7,
    )
    plain = np.linalg.norm(cosines[:, None] - cosines[None], axis=2)
    np.testing.assert_allclose(
        plain[np.triu_indices(4, 1)],
        (0.106752, 1.394855, 1.279509, 1.318561, 1.199191, 0.137677),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        mean_cosine_differences(found)[np.triu_indices(4, 1)],
        (0.108256, 0.822216, 0.790946, 0.790946, 0.822216, 0.127520),
        atol=5e-7,
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dissimilarity", ["edc", "madc"])
def test_groups_of_a_cold_start(seed, dissimilarity):
    found = group(products(COLD_START), 2, dissimilarity, seed)
    assert parts(found, first=0) == sets({0, 1}, {2, 3})


def test_scatter_of_the_groups_of_a_cold_start():
    cosines = decomposed_cosines(products(COLD_START), 2)
    scatter = sum(
        ((cosines[rows] - cosines[rows].mean(axis=0)) ** 2).sum() for rows in ([0, 1], [2, 3])
    )
    assert scatter == pytest.approx(0.0151755, abs=5e-7)


def test_a_newcomer_of_a_cold_start():
    found = products((*COLD_START, (0.5, 0.45, 0.3, 0)))
    similar = [cosine_with_mean(found, 4, rows) for rows in ([0, 1], [2, 3])]
    np.testing.assert_allclose((1 - np.array(similar)) / 2, (0.135294, 0.157756), atol=5e-7)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("directions", [1, 2, 3, 5])
def test_decomposed_cosines_are_those_of_the_singular_vectors(seed, directions):
    """Against the singular value decomposition of the updates themselves."""
    vectors = np.random.default_rng(seed).normal(size=(5, 9))
    main = np.linalg.svd(vectors, full_matrices=False)[2][:directions]
    wanted = vectors @ main.T / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = decomposed_cosines(products(vectors), directions)
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-9)
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-9)


def test_equal_rows_stay_together_where_mean_shift_has_no_bandwidth():
    """Whatever the processor: scikit-learn drops rows whose distance to themselves is rounded."""
    directions = np.array([[1.0, 0.1], [1.0, 0.1], [0.1, 1.0], [-1.0, 0.3], [0.1, 1.0]])
    found = MeanShiftClustering().groups(cosine_distances(products(directions)), 0)
    assert parts(found) == sets({1, 2}, {3, 5}, {4})
