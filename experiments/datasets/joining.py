"""Several data sets as the domains of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import first_difference, seem_to_differ, span_of, warn_of_data
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError

SHOWN = 5
"""Classes of a domain that a message names."""
RENAMED = "dataclasses.replace(part, class_names=[...])"


def joined(name: str, parts: Mapping[str, Dataset]) -> Dataset:
    """One data set of several domains, such as Digits-Five; original test samples come last.

    Writers of one domain are none of another, and get numbers of their own; their names, where all
    have some, get that of the domain in front if two domains have the same. Where all domains have
    `class_names`, classes are matched by them: they are those of the first domain, and then those
    that only later ones have, of which a warning tells. Labels, of which samples have any number,
    may be in another order, but must be the same. Classes of domains without names are matched by
    number. A warning tells of domains that may be of several scales.

    Args:
        name: name of the data set.
        parts: samples by name of the domain, of one input shape, and the same classes or labels.

    Raises:
        DataError: there is no domain, they differ in input shape or number of classes or labels,
            one has domains of its own, some have writers and others have not, names of classes
            differ where some domains have none, a domain has a name twice, or names of two domains
            differ in case, or blanks around them, alone.
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
        writer_names=_joined_writer_names(parts),
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
    """The parts with the same names of classes, or of labels, where they have names."""
    named = {key: part.class_names for key, part in parts.items() if part.class_names is not None}
    kinds = {part.label_sets is None for part in parts.values()}
    if len(set(named.values())) <= 1 or len(kinds) > 1:
        return parts
    union = tuple(dict.fromkeys(chain(*named.values())))
    lacking = {key: [one for one in union if one not in own] for key, own in named.items()}
    lacking = {key: few for key, few in lacking.items() if few}
    bare = [key for key in parts if key not in named]
    problem = _problem_of_names(named, bare, lacking if kinds == {False} else {})
    if problem:
        raise DataError(f"dataset {name!r}: {problem}")
    if lacking:
        warn_of_data(
            f"dataset {name!r}: domains differ in their classes, which are matched by name to "
            f"{len(union)} in all: {_in_words(lacking)}; where two names are of one class, make "
            f"them equal by {RENAMED}"
        )
    return {key: _numbered(part, named[key], union) for key, part in parts.items()}


def _numbered(part: Dataset, own: Sequence[str], union: tuple[str, ...]) -> Dataset:
    """A part whose classes, or labels, are numbered by these names."""
    if part.label_sets is not None:
        sets = part.label_sets[:, [own.index(one) for one in union]]
        return replace(part, label_sets=sets, class_names=union)
    targets = np.array([union.index(one) for one in own])[part.targets]
    return replace(part, targets=targets, num_classes=len(union), class_names=union)


def _problem_of_names(
    named: Mapping[str, Sequence[str]], bare: Sequence[str], lacking: Mapping[str, Sequence[str]]
) -> str:
    """Why classes cannot be matched by their names, in words; empty if they can.

    Args:
        named: names by domain, not all of which are equal.
        bare: domains without names.
        lacking: names that a domain lacks of those of others, of labels alone.
    """
    if bare:
        return (
            f"{', '.join(bare)} {'has' if len(bare) == 1 else 'have'} no names of classes, by "
            "which those of others are matched, as these are not the same in the same order: "
            f"{first_difference(named)}; {RENAMED} gives names"
        )
    for key, own in named.items():
        twice = next((one for one in own if own.count(one) > 1), None)
        if twice is not None:
            return f"{key} has several classes called {twice!r}; give them names by {RENAMED}"
    for (key, own), (other, others) in combinations(named.items(), 2):
        pair = _alike(own, others)
        if pair is not None:
            return (
                f"{pair[0]!r} in {key} and {pair[1]!r} in {other} differ in case, or blanks around "
                f"them, alone; make them equal if they are one class, or else differ in more, by "
                f"{RENAMED}"
            )
    if lacking:
        return (
            "samples of any number of labels must have the same labels in all domains, but "
            f"{_in_words(lacking)}; make columns of 0 and 1 for all of them"
        )
    return ""


def _in_words(lacking: Mapping[str, Sequence[str]]) -> str:
    """Such as `a lacks cat, dog; b lacks fox`."""
    shown = {key: [*few[:SHOWN], *["..."] * (len(few) > SHOWN)] for key, few in lacking.items()}
    return "; ".join(f"{key} lacks {', '.join(few)}" for key, few in shown.items())


def _alike(own: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """The first names of two domains that differ in case, or blanks around them, alone."""
    theirs = {name.strip().casefold(): name for name in others if name not in own}
    pairs = ((name, theirs.get(name.strip().casefold())) for name in own if name not in others)
    return next(((name, other) for name, other in pairs if other is not None), None)


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
        shown = "; ".join(f"{key}: {_shapes(part)}" for key, part in parts.items())
        mixed = len({part.label_sets is None for part in parts.values()}) > 1
        hint = (
            "; for rows of 0 and 1 that are all one-hot, dataclasses.replace(part, "
            "label_sets=numpy.eye(part.num_classes, dtype=bool)) makes labels of classes"
        )
        raise DataError(
            f"dataset {name!r}: domains must agree in input shape and number of classes or labels, "
            f"got {shown}{hint * mixed}"
        )
    without = [key for key, part in parts.items() if part.writers is None]
    if 0 < len(without) < len(parts):
        raise DataError(
            f"dataset {name!r}: all domains must have writers, or none, got none of "
            f"{', '.join(without)}; dataclasses.replace(part, writers=None) leaves them out"
        )


def _shapes(part: Dataset) -> str:
    kind = "classes" if part.label_sets is None else "labels, any number for a sample"
    return f"inputs {part.input_shape}, {part.num_outputs} {kind}"


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


def _joined_writer_names(parts: Mapping[str, Dataset]) -> tuple[str, ...]:
    """Names of the writers of all parts by their new numbers; none where some parts have none."""
    if not all(part.writer_names for part in parts.values()):
        return ()
    pairs = [
        (str(key), part.writer_names[number])
        for key, part in parts.items()
        if part.writers is not None
        for number in np.unique(part.writers)
    ]
    names = tuple(name for _, name in pairs)
    return names if len(set(names)) == len(names) else tuple(map(" ".join, pairs))
