"""Results of units: one JSON file each, from which an interrupted table goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from experiments.config.tables import Rules, Training
from experiments.published.data import Described, are_same
from experiments.published.units import Unit
from experiments.runs.files import PairFiles, write_aside

CHECKOUT = Path(__file__).parents[2]
CURVES = ("accuracy", "macro_f1", "weighted_f1", "ari")
FACTS = {"temperature": "clustering_temperature"}
"""Curves of what a method logs, by its name there."""
DIGITS = 5
_WORK = ".work"
_SECTIONS = {"training": Training, "federation": Rules}


@dataclass(frozen=True)
class Result:
    """What a unit measured, or why it failed.

    Attributes:
        content: of its file.
    """

    content: Mapping[str, Any]

    @property
    def error(self) -> str | None:
        """Why it failed; None where it did not."""
        return self.content.get("error")

    @property
    def data(self) -> Described:
        """What it says of its data; empty where it failed."""
        found: Described = self.content.get("data", {})
        return found

    def value(self, metric: str) -> float | None:
        """A metric by the name of `Metric.measured`, None where it is unknown."""
        value = self.content.get("metrics", {}).get(metric)
        return None if value is None else float(value)

    def curve(self, metric: str) -> Sequence[float | None]:
        """A metric over the rounds; empty where it was not kept."""
        curve: Sequence[float | None] = self.content.get("curves", {}).get(metric, ())
        return curve


def default_folder() -> Path:
    """`experiments/results` of a checkout, else `reproduced` in the working directory."""
    if (CHECKOUT / "pyproject.toml").is_file():
        return CHECKOUT / "experiments" / "results"
    return Path("reproduced")


@dataclass(frozen=True)
class Results:
    """The results of all tables in a folder.

    Attributes:
        folder: FOLDER/PAPER/TABLE/SCALE/UNIT.json.
        here: the data that are here, by the name in a scenario, as far as they are known. A result
            that was made from others is not that of a unit; unknown data are not compared.
    """

    folder: Path
    here: Mapping[str, Described] = field(default_factory=dict, repr=False)
    _known: dict[str, list[Result]] = field(default_factory=dict, repr=False)

    def knowing(self, name: str, data: Described) -> Results:
        """These results where the data of a name are known to be some.

        Args:
            name: of the data set in a scenario.
            data: their description; empty for those that cannot be loaded.
        """
        return replace(self, here={**self.here, name: data})

    def of_table(self, unit_or_name: Unit | str, scale: str = "") -> Path:
        """Folder of a table's results, and in it those of a scale."""
        if isinstance(unit_or_name, Unit):
            return self.folder / unit_or_name.table.results_name / unit_or_name.scale
        return self.folder / unit_or_name / scale

    def path(self, unit: Unit) -> Path:
        """File of a unit's result."""
        return self.of_table(unit) / f"{unit.name}.json"

    def work(self, unit: Unit) -> PairFiles:
        """Files of a unit while it runs, checkpoints among them."""
        return PairFiles(self.of_table(unit) / _WORK / unit.name)

    def find(self, unit: Unit) -> Result | None:
        """The result of a unit, or of one of another table with the same setting.

        A result whose setting is another, since the table has changed, does not count. One that was
        made from the data here precedes one that was made from others.
        """
        setting = _key(unit.setting)
        own = _read(self.path(unit))
        found = [] if own is None or _key(own.content.get("setting", {})) != setting else [own]
        if found and self._is_of_here(unit, found[0]):
            return found[0]
        if not self._known:
            for key, result in self._all():
                self._known.setdefault(key, []).append(result)
        found += self._known.get(setting, [])
        of_here = [each for each in found if self._is_of_here(unit, each)]
        return next(iter([*of_here, *found]), None)

    def is_done(self, unit: Unit) -> bool:
        """Whether a unit has numbers, made from the data here if these are known."""
        result = self.find(unit)
        return result is not None and result.error is None and self._is_of_here(unit, result)

    def of_other_data(self, unit: Unit) -> Described | None:
        """The data of the only results of a unit, if they are not those that are here."""
        result = self.find(unit)
        return None if result is None or self._is_of_here(unit, result) else result.data

    def _is_of_here(self, unit: Unit, result: Result) -> bool:
        return are_same(result.data, self.here.get(unit.dataset, {}))

    def write(self, unit: Unit, content: Mapping[str, Any]) -> None:
        """Write the result of a unit; its working files are removed unless it failed."""
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        write_aside(self.path(unit), text + "\n")
        shutil.rmtree(self.work(unit).folder, ignore_errors=True)
        self._known.clear()

    def _all(self) -> Iterator[tuple[str, Result]]:
        for path in sorted(self.folder.glob("*/*/*/*--seed-*.json")):
            result = _read(path)
            if result is not None and result.error is None:
                yield _key(result.content.get("setting", {})), result


def _read(path: Path) -> Result | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return Result(content) if isinstance(content, dict) else None


def _key(setting: Mapping[str, Any]) -> str:
    """Text that is equal for equal settings.

    A key of a scenario that has its default counts as left out, so that results stay those of their
    units when scenarios get new keys.
    """
    stated = dict(setting)
    for section, kind in _SECTIONS.items():
        defaults = {entry.name: entry.default for entry in fields(kind)}
        values = setting.get(section, {}).items()
        stated[section] = {k: v for k, v in values if k not in defaults or v != defaults[k]}
    return json.dumps(stated, sort_keys=True)
