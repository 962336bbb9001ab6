"""Scenarios: data, partition, model, training, federation, methods and seeds, as TOML."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.config.sections import read_section
from experiments.config.tables import Data, ExecutorConfig, Rules, Training
from experiments.runs.files import Pair

if TYPE_CHECKING:
    from bcfl.methods import Settings

FOLDER = Path(__file__).parents[1] / "scenarios"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class UnknownScenarioError(ValueError):
    """A name that no scenario has, or a file that isn't there."""


@dataclass(frozen=True)
class Scenario:
    """An experiment in full.

    Attributes:
        name: for tables and folders.
        description: one sentence for people.
        data: where the samples come from.
        partition: how they are divided among clients; drawn with the seed of the run.
        model: the network.
        training: what clients do.
        federation: what holds for all rounds.
        methods: names of methods.
        seeds: each method runs once per seed.
    """

    name: str
    data: Data
    partition: ExecutorConfig
    model: ExecutorConfig
    methods: tuple[str, ...]
    description: str = ""
    training: Training = field(default_factory=Training)
    federation: Rules = field(default_factory=Rules)
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"name must be letters, digits, '.', '_' or '-' and start with one of the first "
                f"two, got {self.name!r}"
            )
        _check_distinct("methods", self.methods)
        _check_distinct("seeds", self.seeds)
        if min(self.seeds) < 0:
            raise ValueError(f"seeds must be at least 0, got {min(self.seeds)}")
        if "seed" in self.partition.options:
            raise ValueError(
                "[partition] takes no seed: it is drawn with each seed of the run; give seeds"
            )

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All that there is to run: every method with the first seed, then with the next."""
        return tuple(Pair(name, seed) for seed in self.seeds for name in self.methods)

    def settings(self) -> Settings:
        """The numbers that all methods share.

        Raises:
            ValueError: a value is out of range.
        """
        from bcfl import Aggregation, Objective
        from bcfl.methods import Settings
        from bcfl.policies import ClusterSize

        rules = self.federation
        return Settings(
            num_clusters=rules.num_clusters,
            objective=Objective(
                **asdict(self.training), curvature_samples=_limit(rules.curvature_samples)
            ),
            curvature=rules.curvature,
            posterior=rules.posterior,
            temperature=None if rules.temperature == "default" else rules.temperature,
            staying=None if rules.staying == "uniform" else rules.staying,
            validation=rules.validation,
            calibration=rules.calibration,
            score_samples=_limit(rules.score_samples),
            cluster_size=ClusterSize(rules.min_cluster_size, _limit(rules.max_cluster_size)),
            solver=rules.solver,
            aggregation=Aggregation(rules.fusion, rules.memory, rules.decay),
            prior_precision=rules.prior_precision,
            warm_up_rounds=rules.warm_up_rounds,
            epsilon=rules.epsilon,
            alpha=rules.alpha,
            delta=rules.delta,
            first_clusters=rules.first_clusters,
        )

    def table(self) -> dict[str, Any]:
        """Keys and values as TOML and JSON have them, defaults filled in."""
        return {
            "name": self.name,
            "description": self.description,
            "methods": list(self.methods),
            "seeds": list(self.seeds),
            "data": {key: value for key, value in asdict(self.data).items() if value is not None},
            "partition": {"kind": self.partition.name, **self.partition.options},
            "model": {"name": self.model.name, **self.model.options},
            "training": asdict(self.training),
            "federation": asdict(self.federation),
        }


SECTIONS: Mapping[str, type] = {"data": Data, "training": Training, "federation": Rules}
CHOICES = {"partition": "kind", "model": "name"}


def from_table(table: Mapping[str, Any], folder: Path | None = None) -> Scenario:
    """A scenario from the keys and values of a file.

    Args:
        table: as `Scenario.table` gives it; all that has a default may be left out.
        folder: relative paths in the table start here.

    Raises:
        ValueError: a key is unknown (the message has the nearest) or missing, or a value has
            another type or is out of range.
    """
    built = dict(table)
    for name in built.keys() & {*SECTIONS, *CHOICES}:
        _check_misplaced(name, table[name])
    for name in built.keys() & SECTIONS.keys():
        built[name] = read_section(SECTIONS[name], table[name], f"[{name}]")
    for name in built.keys() & CHOICES.keys():
        built[name] = _choice(table[name], name, CHOICES[name])
    if "data" in built and folder is not None:
        built["data"] = _anchored(built["data"], folder)
    return read_section(Scenario, built, "a scenario")


def load(name: str | Path) -> Scenario:
    """Read a scenario of the package by name, or one of your own by its path.

    Raises:
        UnknownScenarioError: there is no such scenario or file.
        ValueError: the file is no TOML, or says something that `from_table` refuses.
    """
    path = FOLDER / f"{name}.toml"
    if Path(name).suffix == ".toml" or len(Path(name).parts) > 1:
        path = Path(name).expanduser()
    if not path.is_file():
        raise UnknownScenarioError(_not_found(str(name), path))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return from_table({"name": path.stem} | table, path.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def available() -> tuple[Scenario, ...]:
    """The scenarios of the package, sorted by name."""
    return tuple(
        load(path.stem) for path in sorted(FOLDER.glob("*.toml"), key=lambda one: one.stem)
    )


def _choice(table: object, what: str, key: str) -> ExecutorConfig:
    if not isinstance(table, Mapping) or not isinstance(table.get(key), str):
        raise ValueError(f"[{what}] must be a table with {key} = a name in quotes, got {table!r}")
    return ExecutorConfig(table[key], {name: value for name, value in table.items() if name != key})


def _check_misplaced(section: str, table: object) -> None:
    top = {entry.name for entry in fields(Scenario)} - {"name", *SECTIONS, *CHOICES}
    for key in top & set(table if isinstance(table, Mapping) else ()):
        raise ValueError(
            f"{key} stands in [{section}]; it belongs at the top of the file, before any [table]"
        )


def _anchored(data: Data, folder: Path) -> Data:
    """The same with paths that mean the same from any working directory."""
    is_path = data.dataset.endswith(".npz") or os.sep in data.dataset
    dataset = _absolute(data.dataset, folder) if is_path else data.dataset
    return Data(dataset, data.data_dir and _absolute(data.data_dir, folder))


def _absolute(path: str, folder: Path) -> str:
    return str((folder / Path(path).expanduser()).resolve())


def _check_distinct(what: str, values: Sequence[Hashable]) -> None:
    if not values:
        raise ValueError(f"{what} must hold at least one, got none")
    value, count = Counter(values).most_common(1)[0]
    if count > 1:
        raise ValueError(f"{what} must differ from each other, got {value!r} {count} times")


def _limit(number: int | Literal["all"]) -> int | None:
    return None if number == "all" else number


def _not_found(name: str, path: Path) -> str:
    if path.parent != FOLDER:
        return f"scenario file {name!r} doesn't exist"
    names = [file.stem for file in sorted(FOLDER.glob("*.toml"))]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown scenario {name!r}.{hint} All: bcfl list scenarios; your own: a .toml file"
