"""Layout of a network's tensors in its flat vectors, and selections of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from torch import Tensor, nn

Layers = Literal["all", "classifier", "body"]


@dataclass(frozen=True)
class Part:
    """A selection of parameters by block and kind of layer.

    Attributes:
        block: name of a block; empty for all blocks.
        layers: `all`; the `classifier`, which is all fully connected layers, or the last one of a
            fully connected network; or the `body`, which is the rest.

    Raises:
        ValueError: `layers` is unknown.
    """

    block: str = ""
    layers: Layers = "all"

    def __post_init__(self) -> None:
        if self.layers not in get_args(Layers):
            raise ValueError(
                f"layers must be one of {', '.join(get_args(Layers))}, got {self.layers!r}"
            )


ALL = Part()
CLASSIFIER = Part(layers="classifier")
BODY = Part(layers="body")


@dataclass(frozen=True)
class Slot:
    """Location of one named tensor in a flat vector.

    Attributes:
        name: name of the tensor.
        shape: shape of the tensor.
        start: index of its first element.
    """

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def stop(self) -> int:
        """Index after its last element."""
        return self.start + prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a model's tensors inside its flat parameter and buffer vectors.

    Only floating-point buffers (running statistics of BatchNorm) are included; counters have no
    effect on results.

    Attributes:
        parameters: slots of the trainable tensors, in the order of `module.parameters()`.
        buffers: slots of the floating-point buffers, in the order of `module.buffers()`.
    """

    parameters: tuple[Slot, ...]
    buffers: tuple[Slot, ...]

    @property
    def num_parameters(self) -> int:
        """Length of the flat parameter vector."""
        return self.parameters[-1].stop if self.parameters else 0

    @property
    def num_buffers(self) -> int:
        """Length of the flat buffer vector."""
        return self.buffers[-1].stop if self.buffers else 0

    @classmethod
    def of(cls, module: nn.Module) -> Layout:
        """The layout of a module."""
        buffers = [(n, b) for n, b in module.named_buffers() if b.is_floating_point()]
        return cls(_slots(list(module.named_parameters())), _slots(buffers))


def _slots(tensors: Sequence[tuple[str, Tensor]]) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    start = 0
    for name, tensor in tensors:
        slots.append(Slot(name, tuple(tensor.shape), start))
        start = slots[-1].stop
    return tuple(slots)
