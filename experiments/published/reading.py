"""Published tables from their TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from bcfl.methods import typed
from bcfl.runtime import nearest
from experiments.config.options import check_keys
from experiments.published.table import (
    Broken,
    Column,
    Figure,
    Metric,
    Note,
    Printed,
    PublishedTable,
    Row,
)

FOLDER = Path(__file__).parent
LEFT_OUT = "left-out.toml"
_LAST = 10**9
Part = TypeVar("Part")
_PARTS: Mapping[str, type] = {
    "metrics": Metric,
    "columns": Column,
    "rows": Row,
    "broken": Broken,
    "figures": Figure,
}


class UnknownTableError(ValueError):
    """There is no table of a name."""


def names() -> tuple[str, ...]:
    """Names of all tables, PAPER/TABLE, in the order of the papers."""
    paths = [path.relative_to(FOLDER).with_suffix("") for path in FOLDER.glob("*/*.toml")]
    return tuple(sorted((path.as_posix() for path in paths), key=_in_order))


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Tables or figures of a paper that are not here.

    Attributes:
        names: as they would be called, in lower case.
        items: their numbers in the paper.
        reason: why they are not here.
    """

    names: tuple[str, ...]
    items: str
    reason: str


def left_out() -> tuple[LeftOut, ...]:
    """The tables and figures of the papers that are not here, and why."""
    path = FOLDER / LEFT_OUT
    table = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return tuple(_section(LeftOut, entry, "[[left_out]]") for entry in table.get("left_out", ()))


def chosen(given: Sequence[str]) -> tuple[str, ...]:
    """Names of the tables that are meant.

    Args:
        given: names such as `bcfl/1`, in lower or upper case, several joined by commas, or papers
            such as `bcfl`.

    Raises:
        UnknownTableError: there is none of a name; the message says why, or has the nearest.
    """
    known = names()
    papers = dict.fromkeys(name.partition("/")[0] for name in known)
    found: list[str] = []
    for name in (part.strip().lower() for text in given for part in text.split(",")):
        if name in papers:
            found += [table for table in known if table.startswith(f"{name}/")]
        elif name in known:
            found.append(name)
        else:
            raise UnknownTableError(_not_here(name, [*known, *papers]))
    return tuple(dict.fromkeys(found))


def _not_here(name: str, known: Sequence[str]) -> str:
    for entry in left_out():
        if name in entry.names:
            return f"{name!r} is not here ({entry.items}): {entry.reason}"
    absent = [other for entry in left_out() for other in entry.names]
    return f"unknown table {name!r}.{nearest(name, [*known, *absent])} All: bcfl reproduce"


def load(name: str | Path) -> PublishedTable:
    """Read a table of the package by name, or a file by its path.

    Raises:
        UnknownTableError: there is no such table.
        ValueError: the file is no TOML, a key is unknown or missing, or a value is of another type.
    """
    is_file = isinstance(name, Path) or name.endswith(".toml")
    path = Path(name) if is_file else FOLDER / f"{chosen([str(name)])[0]}.toml"
    if not path.is_file():
        raise UnknownTableError(f"file {str(path)!r} doesn't exist")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return from_table(f"{path.parent.name}/{path.stem}", table)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name} is no TOML file: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path.parent.name}/{path.name}: {error}") from error


def from_table(name: str, table: Mapping[str, Any]) -> PublishedTable:
    """A published table from the keys and values of its file.

    Args:
        name: PAPER/TABLE.
        table: as in the file; see `docs/reproducing.md`.

    Raises:
        ValueError: a key is unknown or missing, or a value is of another type or fits no other.
    """
    values: dict[str, Any] = dict(table)
    kept = (
        {part: _names(values.pop(part, None)) for part in ("columns", "rows")}
        if "of" in values
        else {}
    )
    for part, kind in _PARTS.items():
        if part in values:
            entries = typed(part, values[part], list)
            values[part] = tuple(_section(kind, entry, f"[[{part}]]") for entry in entries)
    if "notes" in values:
        values["notes"] = tuple(map(_note, typed("notes", values["notes"], list)))
    if "printed" in values:
        values["printed"] = _printed(values["printed"])
    if "of" in values:
        return _restricted(name, values, kept)
    return _checked(_section(PublishedTable, {"name": name, **values}, "a published table"))


def _restricted(
    name: str, values: Mapping[str, Any], kept: Mapping[str, tuple[str, ...]]
) -> PublishedTable:
    """A table of some columns and rows of another."""
    whole = load(values["of"])
    own = {"name": name, **values}
    check_keys("a published table", PublishedTable, {**vars(whole), **own})
    for part, wanted in kept.items():
        entries = {entry.name: entry for entry in getattr(whole, part)}
        _check_known(part, wanted, entries)
        own[part] = tuple(entries[name] for name in wanted or entries)
    return _checked(replace(whole, **{"figures": (), **own}))


def _names(value: object) -> tuple[str, ...]:
    return (
        () if value is None else typed("columns and rows of another table", value, tuple[str, ...])
    )


def _section(kind: type[Part], table: object, what: str) -> Part:
    if not isinstance(table, Mapping):
        raise ValueError(f"{what} must be a table of keys and values, got {table!r}")
    check_keys(what, kind, table)
    hints = get_type_hints(kind)
    plain = {str, int, float, tuple[str, ...]}
    values = {
        key: typed(f"{key} of {what}", value, hints[key]) if hints[key] in plain else value
        for key, value in table.items()
    }
    return kind(**values)


def _note(entry: object) -> Note:
    return Note(entry) if isinstance(entry, str) else _section(Note, entry, "an entry of notes")


def _printed(table: Mapping[str, Any]) -> dict[str, dict[str, tuple[Printed, ...]]]:
    return {
        column: {
            row: tuple(
                Printed(text) for text in typed(f"{row} of {column}", texts, tuple[str, ...])
            )
            for row, texts in rows.items()
        }
        for column, rows in table.items()
    }


def _checked(table: PublishedTable) -> PublishedTable:
    """The table, if its parts fit each other."""
    names = {
        part: [entry.name for entry in getattr(table, part)]
        for part in ("columns", "rows", "metrics")
    }
    for part, entries in names.items():
        if not entries or len(set(entries)) < len(entries):
            raise ValueError(f"{part} must have distinct names, and at least one, got {entries}")
    for column in table.columns:
        if not table.of:
            _check_known(f"rows of column {column.name!r}", column.rows, names["rows"])
    if not table.of:
        _check_places(table, names)
    _check_grid(table.grid)
    for cells in table.printed.values():
        _check_lengths(cells, len(table.metrics))
    return table


def _check_grid(grid: Mapping[str, Any]) -> None:
    for option, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"[grid] needs a list of values of {option!r}, got {values!r}")


def _check_places(table: PublishedTable, names: Mapping[str, Sequence[str]]) -> None:
    """Check that printed and broken values, and notes, are of columns and rows of the table."""
    for note in table.notes:
        _check_known("columns of an entry of notes", note.columns, names["columns"])
    _check_known("[printed]", table.printed, names["columns"])
    for column, cells in table.printed.items():
        _check_known(f"[printed.{column}]", cells, names["rows"])
    for broken in table.broken:
        for part, known in names.items():
            _check_known(f"{part} of [[broken]]", getattr(broken, part), known)


def _check_lengths(cells: Mapping[str, Sequence[Printed]], length: int) -> None:
    for row, texts in cells.items():
        if len(texts) != length:
            raise ValueError(f"{row} of [printed] needs {length} values, got {len(texts)}")


def _check_known(what: str, given: Any, known: Any) -> None:  # noqa: ANN401 - names
    for name in given:
        if name not in known:
            raise ValueError(
                f"{what} names {name!r}.{nearest(name, known)} Known: {', '.join(known)}"
            )


def _in_order(name: str) -> list[tuple[int, str]]:
    """Numbers inside a name by value, so that 10 comes after 9, and figures after tables."""
    parts = name.replace("/", ".").replace("-", ".").split(".")
    return [(int(part), "") if part.isdecimal() else (_LAST, part) for part in parts]
