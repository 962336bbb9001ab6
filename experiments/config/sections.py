"""Tables of configuration as frozen dataclasses: known keys, right types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, get_type_hints

from bcfl.methods import typed
from experiments.config.options import check_keys

Section = TypeVar("Section")


class SectionError(ValueError):
    """A value in a table of a configuration file."""


@contextmanager
def in_section(name: str) -> Iterator[None]:
    """Name the table of a scenario in the errors of what is built from it.

    Args:
        name: of the table.

    Raises:
        SectionError: in place of a ValueError without a class of its own.
    """
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise SectionError(f"[{name}]: {error}") from error


@contextmanager
def in_file(scenario: str) -> Iterator[None]:
    """Name the file of a scenario in the errors of its tables.

    Args:
        scenario: name of a scenario, or path of its file.

    Raises:
        SectionError: with the name of the file.
    """
    try:
        yield
    except SectionError as error:
        if Path(scenario).suffix != ".toml":
            raise
        raise SectionError(f"{Path(scenario).name}: {error}") from error


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
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
