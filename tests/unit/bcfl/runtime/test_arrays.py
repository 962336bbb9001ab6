"""Values of any type as plain arrays."""

import numpy as np
import pytest
import torch

from bcfl.runtime import arrays_in, plain_array, real_array, rounded_number

ONE, OTHER = np.zeros(2, "u1"), np.ones(2)


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (ONE, [ONE]),
        ([ONE, OTHER], [ONE, OTHER]),
        ([[ONE], (OTHER,)], [ONE, OTHER]),
        ([[0, 1], OTHER], [OTHER]),
        ([[0, 1], [2, 3]], []),
        ([np.float64(1), 2.0], []),
        ([], []),
    ],
)
def test_arrays_in_nested_lists_are_found_before_they_are_joined(values, given):
    assert list(map(id, arrays_in(values))) == list(map(id, given))
    np.testing.assert_array_equal(real_array(values, "x"), np.asarray(values))


def test_text_beside_missing_values_stays_apart_from_text():
    assert plain_array(["a", float("nan")], "x").dtype == object
    assert plain_array(["a", "nan"], "x").dtype.kind == "U"
    assert plain_array(torch.ones(2, dtype=torch.bfloat16), "x").dtype == np.float32


def test_whole_numbers_are_exact_by_their_odd_part():
    assert rounded_number(np.array([0, -(2**40), 2**24 * 3], np.int64)) is None
    assert rounded_number(np.array([2**63, 2**64 - 2**40], np.uint64)) is None
    for rounded in (2**24 + 1, 2**64 - 2**39 + 1):
        assert rounded_number(np.array([1, rounded], np.uint64)) == rounded
