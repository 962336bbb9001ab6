"""Whether clients fit one another: their names, columns and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from reprlib import repr as shortened
from typing import Any

from bcfl.data.clients import POOL, ClientData
from bcfl.data.frames import are_numbered, filled


def sorted_clients(
    clients: Iterable[ClientData] | Mapping[str, ClientData],
) -> tuple[ClientData, ...]:
    """Sort clients by name.

    Raises:
        TypeError: something else than clients is given.
        ValueError: there is no client, or two clients have the same name, or one that of the pool,
            or the columns of their inputs, or the classes of their targets, have other names or
            another order, or only some clients have a list of classes.
    """
    if not isinstance(clients, Iterable):
        raise TypeError(f"clients must be a sequence of ClientData, got {type(clients).__name__}")
    given = tuple(clients.values() if isinstance(clients, Mapping) else clients)
    for one in given:
        if not isinstance(one, ClientData):
            raise TypeError(
                f"clients must be ClientData, got a {type(one).__name__}; make one by "
                "ClientData.from_arrays(name, (inputs, targets), test=(inputs, targets))"
            )
    ordered = tuple(sorted(given, key=lambda data: data.client))
    if not ordered:
        raise ValueError("clients must hold at least one client, got none")
    names = [data.client for data in ordered]
    if any(name.startswith(POOL) for name in names):
        raise ValueError(f"client names must not begin with {POOL!r}, the name of pooled clients")
    repeated = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if repeated:
        raise ValueError(f"client names must be distinct, got more than one of {repeated[:5]}")
    _check_columns({data.client: data.columns for data in ordered}, "columns")
    _check_columns({data.client: data.target_columns for data in ordered}, "columns of targets")
    _check_classes(ordered)
    return ordered


def _check_columns(columns: Mapping[str, Sequence[Any]], what: str) -> None:
    """Clients whose columns have names have the same ones, in the same order."""
    named = {client: names for client, names in columns.items() if names}
    first, wanted = next(iter(named.items()), ("", ()))
    for client, names in named.items():
        numbered = are_numbered(names) or are_numbered(wanted)
        if names != wanted and not (numbered and set(names) != set(wanted)):
            raise ValueError(
                f"clients must have the same {what} in the same order: {first!r} has "
                f"{list(wanted)}, {client!r} has {list(names)}; {_alike(names, wanted, what)}"
            )


def _alike(names: Sequence[Any], wanted: Sequence[Any], what: str) -> str:
    """What gives clients the same columns."""
    if set(names) != set(wanted):
        return (
            "rename those that mean the same, and give every client columns of 0 for categories "
            f"that it lacks, {filled([*dict.fromkeys([*wanted, *names])])}"
        )
    of_inputs = f", or by inputs={list(wanted)} of ClientData.from_dataset" * (what == "columns")
    return f"select them in one order, `frame[{list(wanted)}]`{of_inputs}"


def _check_classes(clients: Sequence[ClientData]) -> None:
    """Clients whose classes have labels have the same ones, in the same order."""
    labelled = [data for data in clients if data.classes]
    bare = [data for data in clients if not data.classes]
    if labelled and bare:
        known = shortened(list(labelled[0].classes))
        raise ValueError(
            "clients must all be given the list of classes, or none of them, so that a class has "
            f"one number everywhere: {labelled[0].client!r} has {known}, {bare[0].client!r} has "
            "none; give every client its labels and the list, classes=[...], or, if its targets "
            "are numbers of these classes already, only the list, "
            f"`dataclasses.replace(client, classes={known})`"
        )
    for data in labelled:
        first = labelled[0]
        if data.classes != first.classes:
            union = list(dict.fromkeys(chain.from_iterable(each.classes for each in labelled)))
            raise ValueError(
                "clients must have the same classes in the same order, so that a class has one "
                f"number everywhere: {first.client!r} has {shortened(list(first.classes))}, "
                f"{data.client!r} has {shortened(list(data.classes))}; give each of them the one "
                f"list of all classes, classes={shortened(union)}"
            )


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)
