"""Checks of arguments."""

import math

import pytest
import torch

from posteriors.checks import largest_magnitude

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_magnitude_tells_what_is_not_finite(dtype):
    numbers = torch.tensor([[1.0, -3.0], [0.5, 2.0]], dtype=dtype)
    assert largest_magnitude(numbers) == 3.0
    assert largest_magnitude(-numbers) == 3.0
    assert largest_magnitude(numbers[:0]) == 0.0
    for wrong in (math.nan, math.inf, -math.inf):
        numbers[1, 0] = wrong
        assert not math.isfinite(largest_magnitude(numbers))
