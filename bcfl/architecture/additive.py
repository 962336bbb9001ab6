"""Clustered additive modelling: a network for everybody plus a network for each cluster.

CAM (Ma et al. 2023, equation 2) predicts by h(x; shared) + f(x; own), the sum of the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch import Tensor, nn

from bcfl.architecture.model import BlockSpec, Model

SHARED, OWN = "shared", "own"


class AdditiveNetwork(nn.Module):
    """The sum of the outputs of two networks of one architecture.

    Attributes:
        shared: network that all clusters share.
        own: network of one cluster.
        any_layout: it does nothing itself that depends on how inputs lie in memory.
    """

    any_layout = True

    def __init__(self, build: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.shared = build()
        self.own = build()

    def forward(self, inputs: Tensor) -> Tensor:
        """(samples, outputs) summed logits."""
        total: Tensor = self.shared(inputs) + self.own(inputs)
        return total


def additive(model: Model) -> Model:
    """The additive model of an architecture, with a global and a cluster block.

    Raises:
        ValueError: the architecture is already divided into blocks.
    """
    if len(model.blocks) > 1:
        names = ", ".join(block.name for block in model.blocks)
        raise ValueError(f"model must be undivided to become additive, it has blocks {names}")
    blocks = (BlockSpec(SHARED, "global", ("shared.",)), BlockSpec(OWN, "cluster", ("own.",)))
    return replace(
        model,
        name=f"additive-{model.name}",
        build=partial(AdditiveNetwork, model.build),
        blocks=blocks,
    )
