"""IID and rotated partitions."""

import numpy as np
import pytest

from experiments import partitions
from experiments.datasets import Dataset


def rotated_by_hand(image, quarter_turns):
    for _ in range(quarter_turns):
        size = image.shape[-1]
        image = np.stack([image[..., :, size - 1 - i] for i in range(size)], axis=-2)
    return image


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_each_group_has_its_own_rotation(digits, groups):
    partition = partitions.rotated(digits, groups=groups, clients=8, seed=1)
    assert sorted(set(partition.groups.values())) == list(range(groups))
    for client in partition:
        for view, samples in client.views.items():
            originals = digits.inputs[partition.indices[client.client][view]]
            expected = rotated_by_hand(originals, client.group * 4 // groups)
            np.testing.assert_array_equal(samples.inputs.numpy(), expected)
    assert partition.num_samples == 1797


def test_rotations_by_180_degrees_of_oblong_images():
    inputs = np.random.default_rng(0).random((40, 1, 4, 6)).astype(np.float32)
    oblong = Dataset(name="oblong", inputs=inputs, targets=np.arange(40) % 2, num_classes=2)
    partition = partitions.rotated(oblong, groups=2, clients=2)
    rows = partition.indices["client-01"]["train"]
    np.testing.assert_array_equal(
        partition[1].views["train"].inputs.numpy(), inputs[rows][..., ::-1, ::-1]
    )
    with pytest.raises(ValueError, match="square images"):
        partitions.rotated(oblong, groups=4, clients=4)


@pytest.mark.parametrize("groups", [3, 5, 8])
def test_rotations_that_are_not_exact_are_refused(digits, groups):
    with pytest.raises(ValueError, match=f"1, 2 or 4 .* got {groups}"):
        partitions.rotated(digits, groups=groups)


def test_flat_inputs_cannot_be_rotated(balanced):
    with pytest.raises(ValueError, match=r"images .* inputs of shape \(1,\)"):
        partitions.rotated(balanced(50))


def test_iid_parts_are_equal_and_identically_distributed(balanced):
    counts = partitions.iid(balanced(701), clients=20).class_counts()
    assert sorted(counts.sum(axis=1))[:10] == [350] * 10
    assert sorted(counts.sum(axis=1))[10:] == [351] * 10
    # Chi-squared with 9 * 19 degrees of freedom, within five standard deviations.
    expected = counts.sum(axis=1, keepdims=True) / 10
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert abs(statistic - 171) < 5 * np.sqrt(2 * 171)
