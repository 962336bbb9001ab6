"""Units of work of a table: one column, one method, one seed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from bcfl.methods import applicable
from bcfl.runtime import nearest
from experiments.config import scenario as scenarios
from experiments.config.scenario import Scenario
from experiments.config.tables import Rules
from experiments.config.variants import Variant, flattened
from experiments.datasets import available
from experiments.published.table import SMALL, Column, PublishedTable, Row, overlaid

BASE = "base"
"""Key of a scenario of the package that a table or column builds on."""
_BELIEFS = "beliefs"
"""Key of a federation that units do not have: no table shows beliefs, and they take time."""
_RULES = tuple(entry.name for entry in fields(Rules) if entry.name != _BELIEFS)
_UNMEASURED = ("name", "description", "methods", "seeds")


@dataclass(frozen=True)
class Unit:
    """One column, one method, one seed at one scale.

    Attributes:
        table: of the unit.
        scale: `small` or `paper`.
        column: the scenario.
        row: the method with its options.
        seed: of partition, networks and draws.
    """

    table: PublishedTable
    scale: str
    column: Column
    row: Row
    seed: int

    @property
    def name(self) -> str:
        """Name of its file, unique in the table."""
        parts = (self.column.name, self.row.name, f"seed-{self.seed}")
        return "--".join(re.sub(r"[^\w.+@=-]+", "-", part).strip("-") for part in parts)

    @property
    def label(self) -> str:
        """The method, with all options in its name if it is of a grid."""
        if not self.row.of:
            return self.row.method
        return Variant(self.row.method).labelled(flattened(self.row.options))

    @property
    def setting(self) -> dict[str, Any]:
        """All that its numbers depend on, but for versions and the data themselves."""
        table = column_scenario(self.table, self.column, self.scale)
        measured = {key: value for key, value in table.items() if key not in _UNMEASURED}
        rules = table.get("federation", {})
        used = _used(self.row.method, tuple(rules))
        measured["federation"] = {key: value for key, value in rules.items() if key in used}
        own = {"method": self.row.method, "options": dict(self.row.options), "seed": self.seed}
        return {**measured, **own}

    @property
    def dataset(self) -> str:
        """Name of its data set in the scenario."""
        return str(column_scenario(self.table, self.column, self.scale)["data"]["dataset"])

    @property
    def command(self) -> str:
        """The command that runs it."""
        words = ["bcfl", "reproduce", self.table.name, "--scale", self.scale]
        row = self.row.of or self.row.name
        words += ["--columns", self.column.name, "--rows", row, "--seeds", str(self.seed)]
        return shlex.join(words)

    def scenario(self, data_dir: str | None = None) -> Scenario:
        """The experiment of this unit.

        Args:
            data_dir: folder that is searched first for data.

        Raises:
            ValueError: a key of the scenario or an option of the method is unknown or misfits.
        """
        table = column_scenario(self.table, self.column, self.scale)
        table["name"] = re.sub(r"[^\w.-]+", "-", f"{self.table.name}-{self.column.name}")
        table["methods"] = {self.label: {} if self.row.of else dict(self.row.options)}
        table["seeds"] = [self.seed]
        table["federation"] = {**table.get("federation", {}), _BELIEFS: False}
        if data_dir is not None:
            table["data"] = {**table["data"], "data_dir": data_dir}
        return scenarios.from_table(table)


def column_scenario(table: PublishedTable, column: Column, scale: str) -> dict[str, Any]:
    """Keys and values of the scenario of a column, without methods.

    Args:
        table: of the column.
        column: one of its columns.
        scale: `small` or `paper`.
    """
    layers = [table.scenario, column.scenario]
    layers += [table.small, column.small] if scale == SMALL else []
    joined: dict[str, Any] = {}
    for layer in layers:
        base = layer.get(BASE)
        own = {key: value for key, value in layer.items() if key != BASE}
        if base is not None:
            joined = overlaid(joined, _base(base))
        joined = overlaid(joined, own)
    return joined


def seeds_of(table: PublishedTable, scale: str) -> tuple[int, ...]:
    """The seeds of a scale."""
    layers = (table.scenario, table.small if scale == SMALL else {})
    return tuple(overlaid(*layers).get("seeds", (0,)))


def missing_data(table: PublishedTable, column: Column, found: Mapping[str, str]) -> list[str]:
    """The data set that a column needs, or domains of it, if they are not there.

    Args:
        table: of the column.
        column: one of its columns.
        found: as of `data_here`.
    """
    name = column_scenario(table, column, SMALL)["data"]["dataset"]
    gap = found.get(name, name)
    return [gap] if gap else []


def data_here(data_dir: str | None) -> dict[str, str]:
    """What is missing of each data set that can be loaded, empty where it is whole.

    Args:
        data_dir: folder that is searched first.
    """
    return {info.name: info.gap for info in available(data_dir) if info.found}


def units_of(
    table: PublishedTable,
    scale: str,
    seeds: Sequence[int] | None = None,
    columns: Sequence[str] = (),
    rows: Sequence[str] = (),
) -> tuple[Unit, ...]:
    """The units of a table: all methods of a column, then the next column, then the next seed.

    Args:
        table: the table.
        scale: `small` or `paper`.
        seeds: other seeds than those of the scale.
        columns: names of columns; empty for all.
        rows: names of rows or methods; empty for all.

    Raises:
        ValueError: the table has no such column or row.
    """
    _check("column", columns, [column.name for column in table.columns])
    _check("row", rows, [name for row in table.rows for name in (row.name, row.method)])
    return tuple(
        Unit(table, scale, column, variant, seed)
        for seed in (seeds_of(table, scale) if seeds is None else seeds)
        for column in table.columns
        if not columns or column.name in columns
        for row in table.rows_of(column)
        if row.method and (not rows or row.name in rows or row.method in rows)
        for variant in table.variants_of(row)
    )


@cache
def _used(method: str, rules: tuple[str, ...]) -> frozenset[str]:
    """Those of some keys of a federation that a method has, or the federation itself."""
    return frozenset({*_RULES, *applicable(method, dict.fromkeys(rules))})


@cache
def _base(name: str) -> Mapping[str, Any]:
    table = scenarios.load(name).table()
    return {key: value for key, value in table.items() if key not in _UNMEASURED}


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            listed = ", ".join(dict.fromkeys(filter(None, known)))
            raise ValueError(
                f"the table has no {what} {name!r}.{nearest(name, known)} It has: {listed}"
            )
