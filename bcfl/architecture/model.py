"""Network architectures with named parameter blocks and flat parameter vectors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from reprlib import repr as shortened
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from bcfl.architecture.building import built
from bcfl.architecture.layout import Layers, Layout, Part, Slot
from bcfl.runtime import is_whole
from posteriors.curvature.likelihood import Likelihood
from posteriors.networks.alterations import is_altered
from posteriors.torch_state import seeded, standard_switches

Scope = Literal["cluster", "global", "client"]


@dataclass(frozen=True)
class BlockSpec:
    """A named block of parameters with one scope of sharing and aggregation.

    Attributes:
        name: name of the block.
        scope: `cluster` blocks differ between clusters; a `global` block is shared by all clusters;
            a `client` block stays on the single client of a cluster and is never transmitted.
        prefixes: parameters whose name starts with one of these belong to the block.
        frozen: whether local training leaves the block unchanged.

    Raises:
        ValueError: the scope is unknown.
    """

    name: str = "model"
    scope: Scope = "cluster"
    prefixes: tuple[str, ...] = ("",)
    frozen: bool = False

    def __post_init__(self) -> None:
        if self.scope not in get_args(Scope):
            raise ValueError(f"scope must be 'cluster', 'global' or 'client', got {self.scope!r}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """An architecture that server and clients build from a name and hyperparameters.

    Attributes:
        name: name of the architecture.
        build: builds a module, always of the same architecture; modules that it keeps, such as a
            pretrained one that it returns again and again, are copied and never changed.
        input_shape: shape of one sample.
        num_outputs: number of classes, of regression outputs, or of labels.
        config: hyperparameters of the architecture, for run records.
        likelihood: `categorical` (logits of classes), `gaussian` (unit noise, squared error) or
            `bernoulli` (a logit for each label, of which any number may be present).
        blocks: blocks with their scope; each parameter belongs to exactly one of them.

    Raises:
        TypeError: an entry is of another type.
        ValueError: the likelihood is unknown, a size below 1, or block names are missing or
            repeated.

    Example:
        A network of one's own, with a head for each cluster on a body that all share:

        >>> import bcfl
        >>> from torch import nn
        >>> model = bcfl.Model(
        ...     name="two layers",
        ...     build=lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)),
        ...     input_shape=(3,),
        ...     num_outputs=2,
        ...     blocks=(
        ...         bcfl.BlockSpec("body", "global", prefixes=("0.",)),
        ...         bcfl.BlockSpec("head", "cluster", prefixes=("2.",)),
        ...     ),
        ... )
        >>> model.layout.num_parameters
        26
    """

    name: str
    build: Callable[[], nn.Module]
    input_shape: tuple[int, ...]
    num_outputs: int
    config: Mapping[str, Any] = field(default_factory=dict)
    likelihood: Likelihood = "categorical"
    blocks: tuple[BlockSpec, ...] = (BlockSpec(),)

    def __post_init__(self) -> None:
        self._check_types()
        if self.likelihood not in get_args(Likelihood):
            allowed = ", ".join(map(repr, get_args(Likelihood)))
            raise ValueError(f"likelihood must be one of {allowed}, got {self.likelihood!r}")
        names = [block.name for block in self.blocks]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"blocks must have distinct names, at least one, got {names}")

    def _check_types(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be text, got {shortened(self.name)}")
        if isinstance(self.build, nn.Module) or not callable(self.build):
            kind = type(self.build).__name__
            raise TypeError(
                f"build must be a function without arguments that builds a torch.nn.Module, got a "
                f"{kind}" + ("; `lambda: module` returns it" * isinstance(self.build, nn.Module))
            )
        shape = self.input_shape
        if not isinstance(shape, tuple | list) or not all(is_whole(size, 0) for size in shape):
            raise TypeError(
                "input_shape must be a tuple of whole numbers, such as (3,), got "
                f"{shortened(shape)}"
            )
        if not is_whole(self.num_outputs, 1):
            raise ValueError(
                f"num_outputs must be a whole number of at least 1, got {self.num_outputs!r}"
            )
        blocks = self.blocks
        if not isinstance(blocks, tuple | list) or not all(
            isinstance(block, BlockSpec) for block in blocks
        ):
            raise TypeError(f"blocks must be a tuple of bcfl.BlockSpec, got {shortened(blocks)}")

    def __repr__(self) -> str:
        return (
            f"Model({self.name}: {self.input_shape} -> {self.num_outputs}, {self.likelihood}, "
            f"{self.layout.num_parameters} parameters)"
        )

    @cached_property
    def layout(self) -> Layout:
        """Layout of the flat vectors."""
        return Layout.of(self.module())

    @cached_property
    def block_slots(self) -> Mapping[str, tuple[tuple[Slot, ...], tuple[Slot, ...]]]:
        """Parameter and buffer slots of each block.

        Raises:
            ValueError: a parameter belongs to no block or to several.
        """
        return {
            block.name: (
                tuple(s for s in self.layout.parameters if self._owner(s) == block.name),
                tuple(s for s in self.layout.buffers if self._owner(s) == block.name),
            )
            for block in self.blocks
        }

    def _owner(self, slot: Slot) -> str:
        owners = [b.name for b in self.blocks if slot.name.startswith(b.prefixes)]
        if len(owners) != 1:
            raise ValueError(f"tensor {slot.name!r} must belong to exactly one block, got {owners}")
        return owners[0]

    def chosen(self, part: Part) -> Tensor:
        """(parameters,) bool mask of the parameters of a part.

        Raises:
            ValueError: there is no block of this name.
        """
        if part.block and part.block not in self.block_slots:
            raise ValueError(
                f"block must be one of {', '.join(self.block_slots)}, got {part.block!r}"
            )
        return self._chosen[part]

    @cached_property
    def trained(self) -> Tensor:
        """(parameters,) bool mask of the parameters that local training may change.

        Those that need no gradient, and those of frozen blocks, stay as they are.
        """
        needed = [torch.full((p.numel(),), p.requires_grad) for p in self.module().parameters()]
        mask = torch.cat(needed) if needed else torch.zeros(0, dtype=torch.bool)
        for block in self.blocks:
            if block.frozen:
                mask &= ~self.chosen(Part(block.name))
        return mask

    @cached_property
    def trains_all(self) -> bool:
        """Whether local training may change all parameters."""
        return bool(self.trained.all())

    def outside(self, blocks: Sequence[str]) -> Tensor:
        """(parameters,) bool mask of the parameters outside the named blocks."""
        mask = torch.ones(self.layout.num_parameters, dtype=torch.bool)
        for block in blocks:
            mask &= ~self.chosen(Part(block))
        return mask

    @cached_property
    def _chosen(self) -> Mapping[Part, Tensor]:
        classifiers = {
            name: self._classifier(slots) for name, (slots, _) in self.block_slots.items()
        }
        chosen = {}
        for block in ("", *self.block_slots):
            for layers in get_args(Layers):
                mask = torch.zeros(self.layout.num_parameters, dtype=torch.bool)
                for name, (slots, _) in self.block_slots.items():
                    for slot in slots if block in ("", name) else ():
                        inside = slot.name in classifiers[name]
                        mask[slot.start : slot.stop] = layers == "all" or inside is (
                            layers == "classifier"
                        )
                chosen[Part(block, layers)] = mask
        return chosen

    def _classifier(self, slots: Sequence[Slot]) -> set[str]:
        """Parameter names of the `classifier` of a block; see `Part`."""
        layers = {
            name: {f"{name}.{kind}" if name else kind for kind, _ in layer.named_parameters()}
            for name, layer in self.module().named_modules()
            if isinstance(layer, nn.Linear)
        }
        names = {slot.name for slot in slots}
        inside = [parameters & names for parameters in layers.values() if parameters & names]
        together = set().union(*inside)
        return inside[-1] if inside and together == names else together

    def module(self, seed: int = 0) -> nn.Module:
        """Build a module initialised from a seed, without changing the global random state."""
        with standard_switches(), seeded(seed):
            return self.fresh()

    def fresh(self) -> nn.Module:
        """A module that nothing else holds: what `build` returns, or a copy if that is shared.

        Raises:
            ValueError: it is shared, and cannot be copied.
        """
        copied = self.is_shared
        module = self.build()
        if copied and any(map(is_altered, module.modules())):
            raise ValueError(
                "build must return a new module in each call where layers have hooks or a forward "
                f"of their own, but that of {self.name!r} returns one again"
            )
        return copy.deepcopy(module) if copied else module

    @cached_property
    def is_shared(self) -> bool:
        """Whether two calls of `build` return one module, or parts in common.

        Raises:
            ValueError: `build` fails, or gives no module of known sizes.
        """
        with standard_switches(), seeded(0):
            first, second = built(self.build, self.name), built(self.build, self.name)
        parts = {id(part) for part in (*first.modules(), *first.parameters(), *first.buffers())}
        others = (*second.modules(), *second.parameters(), *second.buffers())
        return any(id(part) in parts for part in others)

    @cached_property
    def at_rest(self) -> nn.Module:
        """Module in eval mode for `functional_call`; its own parameters are not used."""
        return self.module().eval()

    def network(self, parameters: Tensor, buffers: Tensor) -> nn.Module:
        """A network in evaluation mode with its own copies of flat vectors.

        Args:
            parameters: (num_parameters,); their device and dtype are those of the network.
            buffers: (num_buffers,).

        Returns:
            A torch module.
        """
        module = self.module().to(parameters).eval()
        floating = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        with torch.no_grad():
            for parameter, slot in zip(module.parameters(), self.layout.parameters, strict=True):
                parameter.copy_(parameters[slot.start : slot.stop].view(slot.shape))
            for buffer, slot in zip(floating, self.layout.buffers, strict=True):
                buffer.copy_(buffers[slot.start : slot.stop].view(slot.shape))
        return module

    def initial(self, seed: int) -> tuple[Tensor, Tensor]:
        """Initial (parameters,) and (buffers,) vectors drawn from a seed."""
        module = self.module(seed)
        parameters = [p.detach().reshape(-1) for p in module.parameters()]
        buffers = [b.reshape(-1) for b in module.buffers() if b.is_floating_point()]
        return _flat(parameters), _flat(buffers)

    def reads(self, shape: tuple[int, ...]) -> bool:
        """Whether samples of a shape are valid inputs; flat inputs accept any of equal size."""
        flat = len(self.input_shape) == 1 and prod(shape) == prod(self.input_shape)
        return flat or tuple(shape) == tuple(self.input_shape)

    def split(self, parameters: Tensor, buffers: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """Split flat vectors by block.

        Args:
            parameters: (parameters,) parameters of the model.
            buffers: (buffers,) buffers of the model.

        Returns:
            Flat parameters and buffers by name of the block.
        """
        return {
            name: (_gather(parameters, slots), _gather(buffers, buffer_slots))
            for name, (slots, buffer_slots) in self.block_slots.items()
        }

    def join(self, parts: Mapping[str, Tensor]) -> Tensor:
        """(parameters,) parameters of the model from those of its blocks."""
        return self._join(parts, 0, self.layout.num_parameters)

    def join_buffers(self, parts: Mapping[str, Tensor]) -> Tensor:
        """(buffers,) buffers of the model from those of its blocks."""
        return self._join(parts, 1, self.layout.num_buffers)

    def _join(self, parts: Mapping[str, Tensor], kind: int, length: int) -> Tensor:
        if len(self.blocks) == 1:
            return parts[self.blocks[0].name]
        like = next(iter(parts.values()))
        flat = torch.empty(length, dtype=like.dtype, device=like.device)
        for name, slots in self.block_slots.items():
            position = 0
            for slot in slots[kind]:
                size = slot.stop - slot.start
                flat[slot.start : slot.stop] = parts[name][position : position + size]
                position += size
        return flat


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(tensors)) if tensors else torch.empty(0)


def _gather(flat: Tensor, slots: Sequence[Slot]) -> Tensor:
    if not slots:
        return flat[:0]
    if slots[-1].stop - slots[0].start == sum(s.stop - s.start for s in slots):
        return flat[slots[0].start : slots[-1].stop]
    return torch.cat([flat[s.start : s.stop] for s in slots])
