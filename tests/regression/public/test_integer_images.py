"""Integer pixels mean the same whatever type holds them, and channels are found wherever they are.

Reported to neighbouring projects: unsigned 8-bit 0 and 1 become 0 and 0.0039.
"""

import numpy as np
import pytest

from experiments.datasets import DataError, Dataset

LABELS = np.array([0, 1, 0, 1])


def read(inputs):
    """The inputs as the data set holds them, or None where it refuses them by its error."""
    try:
        return Dataset.from_arrays("own", (inputs, LABELS)).inputs
    except DataError:
        return None


def digits(highest):
    levels = np.arange(4 * 6 * 6).reshape(4, 6, 6) % (highest + 1)
    assert (levels.min(), levels.max()) == (0, highest)
    return levels


@pytest.mark.parametrize(
    "highest",
    [
        *(top for top in (1, 16)),
        143,
    ],
)
@pytest.mark.filterwarnings("ignore:dataset 'own'. 8-bit inputs end at 143 and are divided by 255")
def test_unsigned_bytes_are_scaled_as_other_whole_numbers_or_refused(highest):
    """Up to 143 of 255 they may be a dark picture; up to 1 or 16 they are another scale."""
    found = read(digits(highest).astype(np.uint8))
    if highest == 143:
        np.testing.assert_allclose(found[:, 0], digits(highest) / 255, rtol=1e-6)
    elif found is not None:
        np.testing.assert_allclose(found[:, 0], digits(highest) / highest, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.float32, np.float64])
def test_other_types_are_scaled_to_the_unit_interval(dtype):
    found = read(digits(16).astype(dtype))
    np.testing.assert_allclose(found[:, 0], digits(16) / 16, rtol=1e-6)


def test_truth_values_are_zero_and_one():
    np.testing.assert_array_equal(read(digits(1) > 0)[:, 0], digits(1))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 28, 28, 3), (3, 28, 28)),
        ((4, 28, 28, 1), (1, 28, 28)),
        ((4, 3, 28, 28), (3, 28, 28)),
        *(((4, 28, 28, channels), (channels, 28, 28)) for channels in (2, 4)),
    ],
)
def test_channels_come_first_or_images_are_refused(shape, expected):
    images = np.linspace(0, 1, int(np.prod(shape))).reshape(shape)
    found = read(images)
    if found is not None:
        assert found.shape[1:] == expected
        moved = images if shape[1:] == expected else np.moveaxis(images, 3, 1)
        np.testing.assert_allclose(found, moved, rtol=1e-6)
