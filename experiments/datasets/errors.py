"""Errors of data, and names in their messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from bcfl.runtime import nearest


class DataError(ValueError):
    """Data that cannot be found, read, or used for classification."""


def check_options(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Check the names of keywords that say how values are read.

    Args:
        name: name of the data set, for the message.
        given: the names.
        known: those that there are.

    Raises:
        DataError: one is unknown; the message suggests the nearest.
    """
    for key in given:
        if key not in known:
            raise DataError(
                f"dataset {name!r}: {key!r} is none of the options {', '.join(known)}."
                f"{nearest(key, known)}"
            )


def domains_in_words(names: Sequence[str]) -> str:
    """Such as `domain usps` or `domains usps, svhn`."""
    return f"{'domain' if len(names) == 1 else 'domains'} {', '.join(names)}"


def first_difference(names_of: Mapping[str, Sequence[str]]) -> str:
    """Where names of classes differ, such as `class 3 is 'cat' in training and 'dog' in test`.

    Args:
        names_of: names by part, not all of which are equal.
    """
    (first, names), *others = names_of.items()
    other, different = next(item for item in others if item[1] != names)
    pairs = enumerate(zip_longest(names, different))
    number, (one, another) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    shown = ["none" if name is None else repr(name) for name in (one, another)]
    return f"class {number} is {shown[0]} in {first} and {shown[1]} in {other}"
