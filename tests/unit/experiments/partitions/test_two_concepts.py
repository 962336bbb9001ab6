"""Concepts of alternating clients: labels, noise, classes; expected values derived separately."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from experiments import partitions
from experiments.datasets import Dataset
from experiments.partitions.assembly import Place
from experiments.partitions.noise import Noise


@pytest.fixture(scope="module")
def images():
    targets = np.arange(2000) % 10
    inputs = np.random.default_rng(0).random((2000, 1, 4, 4)).astype(np.float32)
    return Dataset(name="images", inputs=inputs, targets=targets, num_classes=10)


def compared(partition, images):
    """For each client: group, view, what it sees and the samples themselves."""
    for data in partition:
        for view, rows in partition.indices[data.client].items():
            seen = data.views[view]
            yield data.group, view, seen.inputs.numpy(), seen.targets.numpy(), rows


def test_labels_are_shifted_in_training_and_tests(images):
    partition = partitions.shifted_labels(images)
    assert list(partition.groups.values()) == [0, 1] * 10
    for group, _, inputs, targets, rows in compared(partition, images):
        assert (targets == (images.targets[rows] + group) % 10).all()
        assert (inputs == images.inputs[rows]).all()
    assert partition.num_samples == 2000


def test_halves_of_the_classes(images):
    partition = partitions.label_halves(images)
    for group, _, _, targets, rows in compared(partition, images):
        assert (targets == images.targets[rows]).all()
        assert ((targets >= 5) == bool(group)).all()
    assert partition.num_samples == 2000


def test_random_other_labels_are_in_training_only(images):
    partition = partitions.label_halves(images, random_other_labels=True)
    changed = 0
    for group, view, _, targets, rows in compared(partition, images):
        true = images.targets[rows]
        own = (true >= 5) == bool(group)
        assert (targets[own] == true[own]).all()
        if view == "test":
            assert own.all()
            assert len(own)
        else:
            assert 0.3 < own.mean() < 0.7
            changed += (targets[~own] != true[~own]).mean() / 20
    # One in ten random labels is right by chance.
    assert changed == pytest.approx(0.9, abs=0.05)
    assert partition.num_samples + partition.num_left_out == 2000


def test_merged_classes_and_fewer_samples(images):
    partition = partitions.merged_classes(images)
    for group, _, _, targets, rows in compared(partition, images):
        true = images.targets[rows]
        expected = np.where(np.isin(true, (1, 3)), 2, true) if group else true
        assert (targets == expected).all()
    assert [sum(data.num_samples.values()) for data in partition] == [100, 25] * 10
    capped = partitions.merged_classes(images, samples_per_client=60, min_samples=4)
    assert [sum(data.num_samples.values()) for data in capped] == [60, 15] * 10


@pytest.mark.parametrize(
    ("variance", "amount", "low", "pixel", "mean_before", "mean", "at_low", "at_one"),
    [
        (1.0, 0.6, 0.0, 0.0, 0.315627, 0.426251, 0.5, 0.363462),
        (0.4, 0.7, -1.0, 0.0, 0.0, 0.0, 0.367077, 0.367077),
        (0.4, 0.7, -1.0, 1.0, 0.747821, 0.224346, 0.350235, None),
        (0.9, 0.7, -1.0, 1.0, 0.627529, 0.188259, None, None),
    ],
)
def test_expected_pixels_under_noise(
    variance, amount, low, pixel, mean_before, mean, at_low, at_one
):
    flat, random = np.full(400_000, pixel, dtype=np.float32), np.random.default_rng(0)
    gaussian = Noise(variance=variance, amount=0.0, seed=0, low=low).added(flat, random)
    assert gaussian.mean() == pytest.approx(mean_before, abs=0.006)
    noisy = Noise(variance=variance, amount=amount, seed=0, low=low).added(flat, random)
    assert noisy.mean() == pytest.approx(mean, abs=0.008)
    if at_low is not None:
        assert (noisy == low).mean() == pytest.approx(at_low, abs=0.004)
    if at_one is not None:
        assert (noisy == 1).mean() == pytest.approx(at_one, abs=0.004)


def test_every_other_client_has_noise_of_its_own(images):
    partition = partitions.noisy(images)
    for group, _, inputs, targets, rows in compared(partition, images):
        assert (inputs == images.inputs[rows]).all() == (not group)
        assert (targets == images.targets[rows]).all()
        assert 0 <= inputs.min() <= inputs.max() <= 1


def test_noise_is_that_of_the_data_set_or_as_given(images):
    blank = Dataset(
        name="fashion-mnist",
        inputs=np.zeros((400, 1, 8, 8), np.float32),
        targets=np.arange(400) % 10,
        num_classes=10,
    )
    noisy = partitions.noisy(blank, clients=2)[1].views["train"].inputs.numpy()
    # A share of 0.35 is white by salt, of 0.3 what Gaussian noise of variance 0.9 leaves above 1.
    assert (noisy == 1).mean() == pytest.approx(0.35 + 0.3 * 0.145906, abs=0.02)
    plain = partitions.noisy(blank, clients=2, noise=(0.0, 0.0))[1].views["train"].inputs
    assert not plain.any()


def test_noise_by_index_repeats_and_fresh_noise_does_not():
    inputs, targets = np.zeros((5, 8, 8), dtype=np.float32), np.zeros(5, dtype=np.int64)
    places = [Place("a", 1, "train"), Place("b", 1, "test")]
    repeated = [
        Noise(variance=0.4, amount=0.7, seed=0, by_index=True)((inputs, targets), p)[0]
        for p in places
    ]
    assert (repeated[0] == repeated[1]).all()
    fresh = [Noise(variance=0.4, amount=0.7, seed=0)((inputs, targets), p)[0] for p in places]
    assert (fresh[0] != fresh[1]).any()
    again = Noise(variance=0.4, amount=0.7, seed=0)((inputs, targets), places[0])[0]
    assert (again == fresh[0]).all()


def test_standardised_pixels_are_clipped_to_minus_one():
    """Every client's pixels are standardised; only noisy ones are clipped."""
    random = np.random.default_rng(0)
    inputs = (random.random((4000, 1, 4, 4)) * np.linspace(0, 1, 16).reshape(4, 4)).astype("f4")
    images = Dataset(name="images", inputs=inputs, targets=np.arange(4000) % 10, num_classes=10)
    partition = partitions.noisy(images, clients=4, noise=(0.0, 0.2), standardised=True)
    expected = (inputs - inputs.mean(0)) / (inputs.std(0) + 0.001)
    for group, name, seen, _, rows in compared(partition, images):
        kept = expected[rows]
        if group:
            share = (seen == -1).mean()
            assert share == pytest.approx(0.1 + 0.8 * (kept < -1).mean(), abs=0.04), name
            untouched = (seen > -1) & (seen < 1)
            np.testing.assert_allclose(seen[untouched], kept[untouched], atol=1e-5)
        else:
            np.testing.assert_allclose(seen, kept, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("noisy", {"noise": [-1, 0.5]}, "variance"),
        ("noisy", {"noise": [0.4, 2]}, "amount"),
        ("merged-classes", {"small_share": 0}, "small_share must lie in"),
        ("shifted-labels", {"clients": 1}, "groups must be at most clients=1"),
    ],
)
def test_refused(images, name, options, message):
    with pytest.raises(ValueError, match=message):
        partitions.build(name, images, options)


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        ("mnist", (0.4, 0.7)),
        ("mnist-m", (0.4, 0.7)),
        ("fashion-mnist", (0.9, 0.7)),
        ("emnist-a-j", (1.0, 0.6)),
        ("emnist-letters", (1.0, 0.6)),
        ("cifar-10", (0.6, 0.4)),
        ("cifar10", (0.6, 0.4)),
        ("cifar10_jpeg", (0.6, 0.4)),
        ("cifar-10-batches-py", (0.6, 0.4)),
        ("cifar-100", (0.4, 0.7)),
        ("cifar100_coarse", (0.4, 0.7)),
        ("FashionMNIST", (0.9, 0.7)),
        ("fashion_mnist", (0.9, 0.7)),
        ("femnist", (0.4, 0.7)),
        ("optdigits", (0.4, 0.7)),
    ],
)
def test_the_noise_is_that_of_the_data_set(name, noise):
    made = Noise.of_data_set(name, seed=0)
    assert (made.variance, made.amount) == noise


@pytest.mark.parametrize("build", [partitions.noisy, partial(partitions.stream, concept="noisy")])
def test_inputs_beyond_the_range_of_noisy_ones_are_refused(digits, build):
    words = replace(digits, inputs=digits.inputs * 99)
    with pytest.raises(ValueError, match=r"clipped to \[0, 1\]; those of .* are from 0 to 99"):
        build(words, clients=4)
    build(words, clients=4, standardised=True)
