"""Noise drawn by the index of a sample is one pattern for all devices; otherwise none is shared."""

import numpy as np
import pytest
import torch


def saturated(client):
    """Where the first test and training samples of a client are at either end of the pixels."""
    rows = torch.cat([client.views[view].inputs[:20].flatten(1) for view in ("train", "test")])
    return ((rows == 0) | (rows == 1)).numpy()


@pytest.mark.parametrize("by_index", [False, True])
def test_pattern_is_shared(digits, by_index):
    from dataclasses import replace

    from experiments.partitions import build

    grey = replace(digits, inputs=np.full_like(digits.inputs, 0.5))
    options = {"clients": 4, "noise": (0.0, 0.7), "by_index": by_index, "seed": 0}
    noisy = [c.views["train"].inputs[:20] for c in build("noisy", grey, options) if c.group == 1]
    assert len(noisy) == 2
    assert not (noisy[0] == 0.5).all()
    assert torch.equal(*noisy) == by_index
