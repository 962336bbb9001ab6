"""Errors of data, and names in their messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
