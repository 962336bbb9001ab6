"""Entries of flat vectors, against indexing by a mask."""

import pytest
import torch

from bcfl.executors.flat_slices import FlatSlices

MASKS = [
    [True, True, False, True],
    [False, True, True, False, False, True],
    [True] * 3,
    [False] * 3,
]


@pytest.mark.parametrize("leading", [(), (2,)])
@pytest.mark.parametrize("mask", MASKS)
def test_entries_are_those_of_the_mask(mask, leading):
    chosen, vector = torch.tensor(mask), torch.arange(1.0, len(mask) + 1).expand(*leading, -1)
    parts = FlatSlices.of(chosen)
    assert torch.equal(parts.take(vector), vector[..., chosen])
    added, values = vector.clone(), 5.0 * vector[..., chosen]
    parts.add(added, values, 2.0)
    assert torch.equal(added, torch.where(chosen, 11 * vector, vector))
    parts.fill(added, -1.0)
    assert torch.equal(added == -1, chosen.expand_as(added))


def test_there_are_as_few_as_can_be():
    assert FlatSlices.of(torch.tensor(MASKS[1])).slices == (slice(1, 3), slice(5, 6))
