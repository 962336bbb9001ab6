"""Tables of configuration as frozen dataclasses: known keys, right types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, get_type_hints

from bcfl.methods import typed
from experiments.config.options import check_keys

Section = TypeVar("Section")


def read_section(kind: type[Section], table: object, what: str) -> Section:
    """Make a dataclass from a table of a configuration file.

    Args:
        kind: dataclass whose fields are the known keys.
        table: keys and values from TOML or JSON; lists become tuples.
        what: name of the table, for messages.

    Raises:
        ValueError: no table, an unknown key (the message has the nearest), a missing one, a value
            of another type, or one that the dataclass refuses.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"{what} must be a table of keys and values, got {table!r}")
    check_keys(what, kind, table)
    hints = get_type_hints(kind)
    values = {key: typed(f"{key} of {what}", value, hints[key]) for key, value in table.items()}
    return kind(**values)
