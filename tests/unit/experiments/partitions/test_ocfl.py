"""The splits of one-shot clustering: classes, sizes, what is held out."""

import numpy as np
import pytest

from experiments import partitions
from experiments.datasets import Dataset
from experiments.partitions.ocfl import class_shares

CLASSES = {
    False: [{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}],
    True: [{0, 1, 2, 3, 8, 9}, {4, 5, 6, 7, 8, 9}, {0, 1, 2, 3, 4, 5}],
}
MNIST = np.array([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])


@pytest.fixture(scope="module")
def like_mnist():
    targets = np.concatenate([np.repeat(np.arange(10), MNIST), np.arange(10).repeat(1000)])
    rows = np.arange(len(targets), dtype=np.float32)[:, None]
    return Dataset(
        name="mnist", inputs=rows, targets=targets, num_classes=10, num_native_test=10_000
    )


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize(
    ("clients", "balanced", "sizes"),
    [
        (15, True, [5, 5, 5]),
        (30, True, [10, 10, 10]),
        (15, False, [3, 7, 5]),
        (30, False, [7, 14, 9]),
    ],
)
def test_groups_have_their_classes_and_clients_are_disjoint(
    like_mnist, overlapping, clients, balanced, sizes
):
    partition = partitions.ocfl(like_mnist, clients, overlapping, balanced)
    groups = np.array(list(partition.groups.values()))
    assert np.bincount(groups).tolist() == sizes
    counts = partition.class_counts()
    for group, allowed in enumerate(CLASSES[overlapping]):
        held = counts[groups == group]
        assert set(np.flatnonzero(held.sum(axis=0))) <= allowed
        assert (held == held[0]).all()
    assert len(np.unique(counts.sum(axis=1))) == 1
    rows = np.concatenate([r for views in partition.indices.values() for r in views.values()])
    assert len(np.unique(rows)) == len(rows)
    assert rows.max() < 60_000
    assert partition.hold_out.tolist() == list(range(60_000, 70_000))
    assert partition.left_out["in the hold-out set"] == 10_000
    assert partition.num_samples + partition.num_left_out == 70_000
    for views in partition.indices.values():
        assert len(views["test"]) == int(0.3 * (len(views["train"]) + len(views["test"])))


def test_balanced_groups_weight_all_samples_equally():
    shares = class_shares(MNIST, overlapping=False, balanced=True, seed=0)
    assert shares[1, 4:7] == pytest.approx(MNIST[4:7] / MNIST[4:7].sum())
    assert shares.sum(axis=1) == pytest.approx([1, 1, 1])


def test_imbalanced_weights_are_drawn_once_for_a_group():
    draws = np.stack([class_shares(np.ones(10), False, False, seed)[0, :4] for seed in range(3000)])
    # Four components of Dir(1) over ten, renormalised, are Dir(1) over four.
    assert draws.mean(axis=0) == pytest.approx([0.25] * 4, abs=0.015)
    assert draws.var(axis=0) == pytest.approx([0.25 * 0.75 / 5] * 4, rel=0.1)


@pytest.mark.parametrize(
    ("clients", "overlapping", "expected"),
    [
        (15, False, [3693.6, 3568.6, 3588.2]),
        (15, True, [3789.0, 3781.4, 3785.9]),
        (30, False, [1921.4, 1888.0, 1893.3]),
        (30, True, [1946.3, 1944.3, 1945.5]),
    ],
)
def test_published_clients_hold_distinct_samples_of_draws_with_replacement(
    like_mnist, clients, overlapping, expected
):
    partition = partitions.shared_ocfl(like_mnist, clients, overlapping)
    sizes = np.array([sum(data.num_samples.values()) for data in partition])
    means = sizes.reshape(3, -1).mean(axis=1)
    # The number of distinct draws deviates by less than 20 per client.
    np.testing.assert_allclose(means, expected, atol=3 * 20 / np.sqrt(clients / 3))
    rows = [set(np.concatenate(list(views.values()))) for views in partition.indices.values()]
    assert rows[0] & rows[1]
    assert partition.num_left_out == 70_000 - len(set().union(*rows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clients": 20, "balanced": False}, "clients must be 15 or 30"),
        ({"native_test": True}, "the original test set is held out"),
        ({"clients": 2}, "groups must be at most clients=2"),
    ],
)
def test_refused(like_mnist, options, message):
    with pytest.raises(ValueError, match=message):
        partitions.ocfl(like_mnist, **options)


def test_other_numbers_of_classes_are_refused():
    few = Dataset(
        name="few",
        inputs=np.zeros((90, 1), dtype=np.float32),
        targets=np.arange(90) % 9,
        num_classes=9,
    )
    with pytest.raises(ValueError, match="must have 10 classes, 'few' has 9"):
        partitions.ocfl(few, clients=3)
