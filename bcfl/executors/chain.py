"""A model as a chain of layers, where it is one."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from bcfl.model import Model

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def chain_of(model: Model) -> list[tuple[nn.Module, tuple[int | None, int | None]]] | None:
    """The layers of a model in order, each with the places of its weight and its bias.

    Places count the tensors of `model.layout.parameters`. None where the model is no chain that
    trains all its parameters: `Sequential`s may be nested, anything else with parts may not.
    Nor may parameters be shared. Buffers are the running means and variances of batch
    normalisation, two for each such layer in the order of the chain, and no others.
    """
    module = model.module()
    slots = model.layout.parameters
    leaves = list(_leaves(module, ""))
    statistics = [
        f"{name}running_{kind}"
        for name, leaf in leaves
        if isinstance(leaf, NORMS) and leaf.track_running_stats
        for kind in ("mean", "var")
    ]
    others = statistics != [slot.name for slot in model.layout.buffers]
    if others or not all(p.requires_grad for p in module.parameters()):
        return None
    if any(list(leaf.children()) for _, leaf in leaves):
        return None
    places = {slot.name: index for index, slot in enumerate(slots)}
    chain = [
        (leaf, (places.get(f"{name}weight"), places.get(f"{name}bias"))) for name, leaf in leaves
    ]
    claimed = [place for _, own in chain for place in own if place is not None]
    return chain if sorted(claimed) == list(range(len(slots))) and claimed else None


def _leaves(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """What is left when nested `Sequential`s are opened, with the prefix of its parameters.

    A `Sequential` in which a layer is repeated stays closed, since each layer is named only once.
    """
    children = list(module.named_children())
    if type(module) is nn.Sequential and len(children) == len(module):
        for child_name, child in children:
            yield from _leaves(child, f"{name}{child_name}.")
    else:
        yield name, module
