"""Clustered additive modelling (CAM): a global network plus one network per cluster.

Ma et al. (2023), equation 2: predictions are h(x; shared) + f(x; own), the sum of the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch import Tensor, nn

from bcfl.architecture.model import BlockSpec, Model
from posteriors.networks.functional import own_copy

SHARED, OWN = "shared", "own"


class AdditiveNetwork(nn.Module):
    """The sum of the outputs of two networks of one architecture.

    Attributes:
        shared: network shared by all clusters.
        own: network of one cluster.
        any_layout: whether the module itself is independent of the memory layout of inputs.
    """

    any_layout = True

    def __init__(self, build: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.shared = build()
        self.own = build()

    def forward(self, inputs: Tensor) -> Tensor:
        """(samples, outputs) summed logits."""
        total: Tensor = self.shared(own_copy(inputs)) + self.own(inputs)
        return total


def additive(model: Model) -> Model:
    """Additive model of an architecture, with a global and a cluster block.

    Args:
        model: architecture with a single block.

    Raises:
        ValueError: the architecture already has several blocks.
    """
    if len(model.blocks) > 1:
        names = ", ".join(block.name for block in model.blocks)
        raise ValueError(f"model must have a single block to become additive, got blocks {names}")
    blocks = (BlockSpec(SHARED, "global", ("shared.",)), BlockSpec(OWN, "cluster", ("own.",)))
    return replace(
        model,
        name=f"additive-{model.name}",
        build=partial(AdditiveNetwork, model.fresh),
        blocks=blocks,
    )
