"""Samples in a list that differ in type."""

import numpy as np
import pytest
import torch
from PIL import Image

from experiments import datasets
from experiments.datasets import DataError, Dataset, DataWarning


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([Image.new("RGB", (2, 2)), Image.new("CMYK", (2, 2)), Image.new("I;16", (2, 2))], "2 of"),
        ([torch.ones(2), torch.ones(2, dtype=torch.uint8)], "got 1 of float32 and 1 of"),
        ([[np.ones(2, "u1")], [np.ones(2, ">u2")]], "got 1 of uint16 and 1 of"),
    ],
)
def test_images_and_tensors_of_8_bits_are_not_stacked_with_others(inputs, told):
    with pytest.raises(DataError, match=rf"inputs must be of one type, .*{told} uint8; convert"):
        Dataset.from_arrays("mixed", (inputs, [0, 1]))


@pytest.mark.parametrize("reading", [{"scaled": False}, {"highest": 90_000}])
@pytest.mark.parametrize("shape", [(3,), (3, 3)])
def test_samples_of_several_types_are_read_where_it_is_said_how(shape, reading):
    inputs = [np.full(shape, 2, "u2"), np.full(shape, 90_000, "i4"), np.full(shape, 0.5)]
    whole = Dataset.from_arrays("mixed", (inputs, [0, 1, 1]), **reading)
    by_torch = datasets.from_torch([*zip(inputs, [0, 1, 1], strict=True)], **reading)
    expected = np.array([2, 90_000, 0.5]) / reading.get("highest", 1)
    for found in (whole, by_torch):
        np.testing.assert_allclose(found.inputs.reshape(3, -1)[:, 0], expected, rtol=1e-6)


def test_rows_of_whole_numbers_may_differ_in_type():
    inputs = [np.array([1, 2], "u2"), np.array([0, 90_000], "i4")]
    with pytest.warns(DataWarning, match=r"whole numbers from 0 to 9e\+04 .* scaled=False"):
        Dataset.from_arrays("table", (inputs, [0, 1]))
    with pytest.warns(DataWarning, match=r"whole numbers from 0 to 9e\+04 .* scaled=False"):
        datasets.from_torch([*zip(inputs, [0, 1], strict=True)])


@pytest.mark.parametrize("kind", ["u2", ">u2", "?", "f4", "i8"])
def test_bytes_are_not_stacked_with_samples_of_another_type(kind):
    inputs = [np.full((4, 4), 255, "u1"), np.ones((4, 4), kind)]
    with pytest.raises(DataError, match=r"inputs must be of one type, .* and 1 of uint8; convert"):
        Dataset.from_arrays("mixed", (inputs, [0, 1]))
