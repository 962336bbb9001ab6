import numpy as np
import pytest

from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
    in_order_of_appearance,
    joining_nearest,
)

EVERY = {
    "hdbscan": HDBSCANClustering(),
    "hdbscan, nearest": HDBSCANClustering(noise="nearest"),
    "mean shift": MeanShiftClustering(),
    "affinity": AffinityClustering(),
    "affinity, released": AffinityClustering("distance"),
    "k-means": KMeansClustering(3),
    "agglomerative": AgglomerativeClustering(0.4),
    "agglomerative, released": AgglomerativeClustering(0.4, reads="similarity"),
}


@pytest.fixture(params=EVERY)
def clustering(request):
    return EVERY[request.param]


def groups_of(sizes, near=0.1, far=1.2):
    """Distances of clients in groups of given sizes, and the groups."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    jitter = np.random.default_rng(0).uniform(0.9, 1.1, size=(len(truth), len(truth)))
    distances = np.where(truth[:, None] == truth, near, far) * (jitter + jitter.T) / 2
    np.fill_diagonal(distances, 0)
    return distances, truth


def assert_groups(labels, count):
    assert labels.shape == (count,)
    assert labels.dtype == np.int64
    assert set(labels) == set(range(labels.max() + 1))
    assert labels[0] == 0


@pytest.mark.parametrize("count", [2, 3, 5, 8, 15])
@pytest.mark.parametrize("kind", ["alike", "equally far", "random"])
def test_a_clustering_gives_groups_whatever_the_distances(clustering, kind, count):
    random = np.random.default_rng(count).uniform(0, 2, size=(count, count))
    distances = {
        "alike": np.zeros((count, count)),
        "equally far": np.ones((count, count)),
        "random": (random + random.T) / 2,
    }[kind]
    np.fill_diagonal(distances, 0)
    before = distances.copy()
    labels = clustering.groups(distances, 5)
    assert_groups(labels, count)
    assert (distances == before).all()
    assert (labels == clustering.groups(distances, 5)).all()


@pytest.mark.parametrize("name", ["hdbscan", "affinity", "k-means", "agglomerative"])
def test_groups_that_are_far_apart_are_found(name):
    distances, truth = groups_of((5, 4, 6))
    assert EVERY[name].groups(distances, 0).tolist() == truth.tolist()


@pytest.mark.parametrize(("count", "smallest"), [(15, 3), (30, 6), (4, 2)])
def test_the_smallest_cluster_is_a_fifth_of_the_clients(count, smallest):
    """A group of just that size is a cluster, one that has a client less isn't."""
    enough, _ = groups_of((smallest, count - smallest), near=0.01)
    assert np.bincount(HDBSCANClustering().groups(enough, 0))[0] == smallest
    if smallest > 2:
        half = (count - smallest + 1) // 2
        few, _ = groups_of((smallest - 1, half, count - smallest + 1 - half), near=0.01)
        labels = HDBSCANClustering(noise="nearest").groups(few, 0)
        assert labels.max() + 1 == 2


def test_noise_is_a_cluster_of_its_own_or_joins_the_nearest():
    distances, truth = groups_of((4, 5, 1, 1), near=0.05)
    distances[9:] = distances[:, 9:] = 1.9
    distances[9, :4] = distances[:4, 9] = 1.6
    distances[10, 4:9] = distances[4:9, 10] = 1.7
    np.fill_diagonal(distances, 0)
    assert HDBSCANClustering().groups(distances, 0).tolist() == np.minimum(truth, 2).tolist()
    nearest = HDBSCANClustering(noise="nearest").groups(distances, 0)
    assert nearest.tolist() == [*truth[:9], 0, 1]


def test_if_all_is_noise_all_stay_together():
    labels = HDBSCANClustering(noise="nearest").groups(1 - np.eye(6), 0)
    assert labels.tolist() == [0] * 6
    noise = np.full(4, -1)
    assert joining_nearest(noise, 1 - np.eye(4)) is noise


def test_groups_are_numbered_as_they_appear():
    assert in_order_of_appearance(np.array([7, -1, 7, 0])).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HDBSCANClustering(0.0), r"min_share must lie in \(0, 1\], got 0.0"),
        (lambda: HDBSCANClustering(noise="alone"), "noise must be .*, got 'alone'"),
        (lambda: AffinityClustering("rows"), "reads must be .*, got 'rows'"),
        (lambda: KMeansClustering(0), "num_clusters must be a whole number of at least 1, got 0"),
        (lambda: AgglomerativeClustering(2.5), r"threshold must lie in \[0, 2\], got 2.5"),
        (lambda: AgglomerativeClustering(0.1, "ward"), "linkage must be .*, got 'ward'"),
        (lambda: AgglomerativeClustering(0.1, reads="rows"), "reads must be .*, got 'rows'"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
