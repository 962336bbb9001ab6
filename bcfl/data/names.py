"""Names of clients and their views, and true groups: what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bcfl.runtime.numbers import as_whole
from bcfl.runtime.suggestions import described, nearest_name

TRAIN, VALIDATION, TEST = "train", "validation", "test"
MEMORY, VALIDATION_MEMORY = "memory", "validation-memory"
"""Views of earlier time steps, which `at_step` makes."""

UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have (section 2.2); lone surrogates are not in UTF-8 either."""
ROLES = (TRAIN, VALIDATION, TEST)
SIMILAR = 0.7
"""Least similarity of a view's name to another one that it is taken to be a slip of."""


def checked_name(name: str) -> str:
    """A client's name, as plain text.

    Raises:
        TypeError: it is not a string.
        ValueError: it is empty, or holds characters that UTF-8 or XML, and so checkpoints or
            graphs, cannot.
    """
    if not isinstance(name, str):
        raise TypeError(f"client must be a name as text, got {described(name)}")
    if not name:
        raise ValueError("client must be a name of at least one character, got ''")
    odd = UNWRITABLE.search(name)
    if odd:
        raise ValueError(
            f"client must be text that files can hold, got {name!r} with the character "
            f"U+{ord(odd[0]):04X}"
        )
    return str(name)


def checked_group(client: str, group: int | None) -> int | None:
    """A client's true group as a whole number, or None.

    Args:
        client: name of the client, for errors.
        group: the group.

    Raises:
        TypeError: it is not a whole number.
        ValueError: it has more than 32 bits.
    """
    if group is None:
        return None
    number = int(group) if isinstance(group, bool) else as_whole(group)
    if number is None:
        raise TypeError(
            f"client {client!r}: group must be a whole number or None, got {described(group)}"
        )
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"client {client!r}: group must be a number of 32 bits, got {number}")
    return number


def check_view_names(client: str, names: Iterable[object]) -> None:
    """Check the names of a client's views.

    Args:
        client: name of the client, for errors.
        names: of its views, such as `train` and `train:2`.

    Raises:
        TypeError: a name is not a string.
        ValueError: the view `train` is missing, a time step is not a whole number from 1, or a name
            is nearly that of another view.
    """
    given = list(names)
    for name in given:
        if not isinstance(name, str):
            raise TypeError(
                f"client {client!r}: names of views must be text, got {described(name)}"
            )
        kind, colon, step = name.partition(":")
        number = "0|[1-9][0-9]*" if kind in (MEMORY, VALIDATION_MEMORY) else "[1-9][0-9]*"
        if not kind or (colon and not re.fullmatch(number, step)):
            raise ValueError(
                f"client {client!r}: the name of a view must be like 'train', or like 'train:2' "
                f"where its samples come at time step 2, counted from 0, got {name!r}"
            )
        meant = _meant(kind)
        if meant:
            raise ValueError(
                f"client {client!r} has a view {name!r}. Did you mean {meant + colon + step!r}? "
                "Views of your own need names that differ more from 'train', 'validation' and "
                "'test'"
            )
    if TRAIN not in given:
        raise ValueError(
            f"client {client!r} must have a view {TRAIN!r} of training samples, got "
            f"{', '.join(map(repr, given)) or 'no view'}"
        )


def _meant(kind: str) -> str:
    """The role that a name is nearly, or an abbreviation of; empty where there is none."""
    if kind in (*ROLES, MEMORY, VALIDATION_MEMORY, "calibration"):
        return ""
    short = [role for role in ROLES if len(kind) > 2 and role.startswith(kind.casefold())]
    return short[0] if short else nearest_name(kind, ROLES, SIMILAR) or ""
