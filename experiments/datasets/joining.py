"""Several data sets as the domains of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import warn_of_data
from experiments.datasets.arrays import seem_to_differ, span_of
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError, first_difference

SHOWN = 5
"""Classes of a domain that a warning names."""


def joined(name: str, parts: Mapping[str, Dataset]) -> Dataset:
    """One data set of several domains, such as Digits-Five; original test samples come last.

    Writers of one domain are none of another, and get numbers of their own. Where all domains have
    `class_names`, classes are matched by them: they are those of the first domain, and then those
    that only later ones have, of which a warning tells. Classes of domains without names are
    matched by number. A warning tells of domains that may be of several scales.

    Args:
        name: name of the data set.
        parts: samples by name of the domain, of one input shape, and the same classes or labels.

    Raises:
        DataError: there is no domain, they differ in input shape or number of classes or labels,
            one has domains of its own, some have writers and others have not, or names of classes
            differ where some domains have none, where samples have any number of labels, where two
            domains share no name, or in case or blanks alone.
    """
    _check_mapping(name, parts)
    parts = _matched(name, parts)
    _check_joinable(name, parts)
    _warn_of_scales(name, parts)
    targets, label_sets = _joined_labels(list(parts.values()))
    kept = [slice(0, len(part) - part.num_native_test) for part in parts.values()]
    held = [slice(rows.stop, None) for rows in kept]

    def ordered(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        chosen = [
            array[rows]
            for rows_of in (kept, held)
            for array, rows in zip(arrays, rows_of, strict=True)
        ]
        return np.concatenate(chosen)

    return Dataset(
        name=name,
        inputs=ordered([part.inputs for part in parts.values()]),
        targets=ordered(targets),
        num_classes=_first(parts).num_classes if label_sets is None else len(label_sets),
        num_native_test=sum(part.num_native_test for part in parts.values()),
        source="; ".join(part.source for part in parts.values()),
        writers=None if _first(parts).writers is None else ordered(_joined_writers(parts)),
        domains=ordered([np.full(len(part), n) for n, part in enumerate(parts.values())]),
        domain_names=tuple(map(str, parts)),
        label_sets=label_sets,
        class_names=next((one.class_names for one in parts.values() if one.class_names), None),
    )


def _first(parts: Mapping[str, Dataset]) -> Dataset:
    return next(iter(parts.values()))


def _check_mapping(name: str, parts: object) -> None:
    got = "" if isinstance(parts, Mapping) else f"a {type(parts).__name__}"
    if isinstance(parts, Mapping):
        others = [type(part).__name__ for part in parts.values() if not isinstance(part, Dataset)]
        got = f"a {others[0]} in it" if others else "" if parts else "none"
    if got:
        raise DataError(
            f"dataset {name!r}: domains must be a mapping from names to data sets, at least one, "
            f"got {got}"
        )


def _matched(name: str, parts: Mapping[str, Dataset]) -> Mapping[str, Dataset]:
    """The parts with the same names of classes, where they have names."""
    named = {key: part.class_names for key, part in parts.items() if part.class_names is not None}
    if len(set(named.values())) <= 1:
        return parts
    repeated = any(len(set(names)) < len(names) for names in named.values())
    rows = any(part.label_sets is not None for part in parts.values())
    if len(named) < len(parts) or repeated or rows or _are_spelled_differently(named.values()):
        raise DataError(
            f"dataset {name!r}: domains must have the same names of classes or labels in the same "
            "order, or classes with distinct names in all of them that are spelled alike, but "
            f"{first_difference(named)}; give all the same by dataclasses.replace(part, "
            "class_names=[...]), or have them matched by number by class_names=None"
        )
    union = tuple(dict.fromkeys(chain(*named.values())))
    lacking = {key: [one for one in union if one not in own] for key, own in named.items()}
    if any(lacking.values()):
        shown = "; ".join(
            f"{key} lacks {', '.join(few[:SHOWN])}" for key, few in lacking.items() if few
        )
        warn_of_data(
            f"dataset {name!r}: domains differ in their classes, which are matched by name to "
            f"{len(union)} in all: {shown}"
        )
    return {
        key: replace(
            part,
            targets=np.array([union.index(one) for one in named[key]])[part.targets],
            num_classes=len(union),
            class_names=union,
        )
        for key, part in parts.items()
    }


def _are_spelled_differently(names_of: Iterable[Sequence[str]]) -> bool:
    """Whether two domains share no name of a class, or have names that differ in case or blanks."""
    for one, other in combinations(map(set, names_of), 2):
        if not one & other or set(map(_spelled, one - other)) & set(map(_spelled, other - one)):
            return True
    return False


def _spelled(name: str) -> str:
    """A name in lower case, without blanks or the underscores in their place."""
    return "".join(name.replace("_", " ").split()).casefold()


def _check_joinable(name: str, parts: Mapping[str, Dataset]) -> None:
    for key, part in parts.items():
        if part.domains is not None:
            raise DataError(
                f"dataset {name!r}: domain {key!r} has domains of its own, "
                f"{', '.join(part.domain_names)}; join these, or leave them out by "
                "dataclasses.replace(part, domains=None, domain_names=())"
            )
    kinds = {
        (part.input_shape, part.num_outputs, part.label_sets is None) for part in parts.values()
    }
    if len(kinds) != 1:
        shown = ", ".join(f"{key} {part!r}" for key, part in parts.items())
        raise DataError(
            f"dataset {name!r}: domains must agree in input shape and number of classes or labels, "
            f"got {shown}"
        )
    without = [key for key, part in parts.items() if part.writers is None]
    if 0 < len(without) < len(parts):
        raise DataError(
            f"dataset {name!r}: all domains must have writers, or none, got none of "
            f"{', '.join(without)}; dataclasses.replace(part, writers=None) leaves them out"
        )


def _warn_of_scales(name: str, parts: Mapping[str, Dataset]) -> None:
    spans = {key: span_of(part.inputs) for key, part in parts.items()}
    if seem_to_differ(spans.values()):
        shown = ", ".join(f"{key} up to {span.high:.6g}" for key, span in spans.items())
        warn_of_data(
            f"dataset {name!r}: domains are joined as they are, but may be of several scales, got "
            f"{shown}; if they are, read all with the same `highest` or `scaled`"
        )


def _joined_labels(
    parts: Sequence[Dataset],
) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_] | None]:
    """Targets of each part, and the sets of labels that occur in any of them."""
    sets = [part.label_sets for part in parts if part.label_sets is not None]
    targets = [part.targets for part in parts]
    if not sets:
        return targets, None
    union, numbers = np.unique(np.concatenate(sets), axis=0, return_inverse=True)
    own = np.split(numbers.reshape(-1), np.cumsum([len(one) for one in sets])[:-1])
    return [number[target] for number, target in zip(own, targets, strict=True)], union


def _joined_writers(parts: Mapping[str, Dataset]) -> list[NDArray[np.int64]]:
    """Writers of each part, with numbers that no other part has."""
    found: list[NDArray[np.int64]] = []
    for part in parts.values():
        assert part.writers is not None
        after = 1 + max((int(one.max()) for one in found), default=-1)
        found.append(np.unique(part.writers, return_inverse=True)[1] + after)
    return found
