"""Partitions and models with their options, as lists and documentation show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from bcfl.methods import RECIPES, Option, UnknownMethodError, named, registered
from bcfl.runtime import nearest
from experiments.config.source import Definition, definition, described

SHAPES = ("input_shape", "inputs", "classes", "outputs")
"""Options of models that the data set sets unless they are given."""
OF_THE_DATA = "that of the data set"
GIVEN = ("dataset", "seed")
"""Arguments of partitions that are no options of a scenario."""
OTHER_DEFAULT = re.compile(r"`(\w+)` \(([\d.]+) by default\)")
"""Default of an option of all partitions that differs for one of them, in its docstring."""


@dataclass(frozen=True, kw_only=True)
class Component:
    """A partition or a model.

    Attributes:
        name: in scenarios.
        description: one sentence.
        options: by name.
    """

    name: str
    description: str
    options: Mapping[str, Option]


@cache
def partitions() -> Mapping[str, Component]:
    """The partitions by name; what all of them take comes last among their options."""
    return _components("partition", _with_split)


@cache
def models() -> Mapping[str, Component]:
    """The models by name; what the data set sets comes last among their options."""
    return _components("model", _with_shapes)


def split_options() -> dict[str, Option]:
    """The options of all partitions."""
    return definition("experiments.partitions.partition", "Split").options()


def options_of(name: str) -> Mapping[str, Option]:
    """The options of a method, partition or model.

    Args:
        name: of it, as in scenarios.

    Raises:
        UnknownMethodError: there is none; the message suggests the nearest method.
        ValueError: there is none, and a partition or model has a similar name; or it is one of
            another package, whose options are not known.
    """
    known = {**partitions(), **models()}
    if name in known:
        return known[name].options
    for kind in ("partitions", "models"):
        if reference := registered(kind).get(name):
            raise ValueError(f"options of {name!r} are the arguments of {reference}, of a package")
    try:
        return named(name).options
    except UnknownMethodError:
        near = nearest(name, known)
        if near and near == nearest(name, (*RECIPES, *known)):
            raise ValueError(f"unknown method, partition or model {name!r}.{near}") from None
        raise


def _components(
    what: str, options: Callable[[Definition], dict[str, Option]]
) -> dict[str, Component]:
    known = definition(f"experiments.{what}s.catalogue", f"{what.upper()}S").entries()
    return {
        name: Component(name=name, description=found.summary, options=options(found))
        for name, found in known.items()
    }


def _with_split(function: Definition) -> dict[str, Option]:
    own = {name: one for name, one in function.options().items() if name not in GIVEN}
    shared = split_options()
    for name, default in OTHER_DEFAULT.findall(described(function.text).get("options", "")):
        shared[name] = replace(shared[name], default=float(default))
    return own | shared


def _with_shapes(function: Definition) -> dict[str, Option]:
    options = function.options()
    of_data = {
        name: replace(options[name], default=None, source=OF_THE_DATA)
        for name in SHAPES
        if name in options
    }
    return {name: one for name, one in options.items() if name not in SHAPES} | of_data
