"""Evaluating a network on any number of samples, a mini-batch at a time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posteriors.networks.functional import own_copy

CHUNK = 2048
CACHED = 2**17
"""How many numbers of inputs a CPU takes at a time, so that activations stay in its cache."""


def rows_at_once(inputs: Tensor) -> int:
    """How many samples of (samples, ...) go through a network at a time."""
    if inputs.device.type != "cpu":
        return CHUNK
    return min(CHUNK, max(1, CACHED // max(1, inputs[:1].numel())))


def network_outputs(network: nn.Module, inputs: Tensor) -> Tensor:
    """(samples, outputs) of at least one sample, without gradients.

    Args:
        network: network, in the mode that it is to be evaluated in.
        inputs: (samples, *input shape), left as they are.
    """
    with torch.no_grad():
        parts = torch.split(inputs, rows_at_once(inputs))
        return torch.cat([network(own_copy(part)) for part in parts])
