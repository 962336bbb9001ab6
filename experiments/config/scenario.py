"""Scenarios: data, partition, model, training, federation, methods and seeds, as TOML."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.executors import Privacy
from bcfl.methods import COMBINATORS, OBJECTIVE, RECIPES, applicable, build, named, typed
from bcfl.runtime import nearest
from experiments.config.known import MODELS, PARTITIONS, check_known
from experiments.config.options import check_keys
from experiments.config.sections import read_section
from experiments.config.tables import Choice, Data, Rules, Training
from experiments.config.variants import Pair, Variant, is_own, merged, written

if TYPE_CHECKING:
    from bcfl import Method

FOLDER = Path(__file__).parents[1] / "scenarios"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class UnknownScenarioError(ValueError):
    """An unknown scenario, or a missing file."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A complete experiment.

    Attributes:
        name: for tables and folders.
        description: one sentence for people.
        data: where the samples come from.
        partition: of the samples among clients; drawn with the seed of the run.
        model: the network.
        training: local training.
        federation: settings of all rounds.
        privacy: how clients randomise what they send; None has them send it as it is.
        methods: names of methods, or of variants such as `ifca@num_clusters=3`.
        seeds: each method runs once per seed.
        method_options: options by method; tables `[methods.NAME]`.
    """

    name: str
    data: Data
    partition: Choice
    model: Choice
    methods: tuple[str, ...]
    description: str = ""
    training: Training = field(default_factory=Training)
    federation: Rules = field(default_factory=Rules)
    privacy: Privacy | None = None
    seeds: tuple[int, ...] = (0,)
    method_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

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
        check_known("partition", self.partition.name, PARTITIONS)
        check_known("model", self.model.name, MODELS)
        for label in sorted(self.methods, key=is_own):
            self.options(label)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Methods and seeds of the run: every method with the first seed, then with the next."""
        return tuple(Pair(name, seed) for seed in self.seeds for name in self.methods)

    def options(self, label: str) -> dict[str, Any]:
        """Options of a method of this run, local training as the table `objective`.

        Later ones take precedence: those of `[federation]` that the method has, those of
        `[methods.NAME]`, those that a variant has in its name.

        Args:
            label: name of the method or variant, as in `methods`.

        Raises:
            UnknownMethodError: there is no such method.
            UnknownOptionError: it has no such option.
            ValueError: a value is of another type.
        """
        variant = Variant.of(label)
        method = named(variant.method)
        shared = applicable(variant.method, self.federation.options)
        own = merged(self.method_options.get(variant.method, {}), variant.options)
        options = merged(shared, own)
        numbers = merged({OBJECTIVE: asdict(self.training)}, options)[OBJECTIVE]
        training = asdict(read_section(Training, numbers, f"{OBJECTIVE} of {label}"))
        return {**method.check({**options, OBJECTIVE: training})}

    def build(self, label: str) -> Method:
        """A method of this run.

        Args:
            label: its name, as in `methods`.

        Raises:
            ValueError: a value is out of range.
        """
        from bcfl import Objective

        options = self.options(label)
        training = Objective(**options.pop(OBJECTIVE))
        method = build(Variant.of(label).method, objective=training, **options)
        return replace(method, name=label)

    def table(self) -> dict[str, Any]:
        """Keys and values as in TOML and JSON, defaults filled in."""
        federation = asdict(self.federation)
        options = federation.pop("options")
        return {
            "name": self.name,
            "description": self.description,
            "methods": self._methods(),
            "seeds": list(self.seeds),
            "data": self.data.table(),
            "partition": {"kind": self.partition.name, **self.partition.options},
            "model": {"name": self.model.name, **self.model.options},
            "training": written(asdict(self.training)),
            "federation": written(federation | options),
            **({} if self.privacy is None else {"privacy": asdict(self.privacy)}),
        }

    def _methods(self) -> list[str] | dict[str, Any]:
        """Names alone, or with tables of options where there are any."""
        own = {
            label: self.method_options.get(Variant.of(label).method, {}) for label in self.methods
        }
        if not any(own.values()):
            return list(self.methods)
        return {label: written(options) for label, options in own.items()}


SECTIONS: Mapping[str, type] = {"data": Data, "training": Training, "privacy": Privacy}
CHOICES = {"partition": "kind", "model": "name"}


def from_table(table: Mapping[str, Any], folder: Path | None = None) -> Scenario:
    """A scenario from the keys and values of a file.

    Args:
        table: in the form of `Scenario.table`; keys with defaults may be left out.
        folder: base of relative paths in the table.

    Raises:
        ValueError: a key is unknown (the message has the nearest) or missing, or a value has
            another type or is out of range.
    """
    built = dict(table)
    for name in built.keys() & {*SECTIONS, *CHOICES, "federation"}:
        _check_misplaced(name, table[name])
    for name in built.keys() & SECTIONS.keys():
        built[name] = read_section(SECTIONS[name], table[name], f"[{name}]")
    if "federation" in built:
        built["federation"] = _federation(built["federation"])
    for name in built.keys() & CHOICES.keys():
        built[name] = _choice(table[name], name, CHOICES[name])
    if "data" in built and folder is not None:
        built["data"] = _anchored(built["data"], folder)
    options = {}
    if isinstance(built.get("methods"), Mapping):
        options = _method_options(built["methods"])
        built["methods"] = list(built["methods"])
    check_keys("a scenario", Scenario, built, without=("method_options",))
    hints = {"methods": tuple[str, ...], "seeds": tuple[int, ...], "name": str, "description": str}
    for key in built.keys() & hints:
        built[key] = typed(f"{key} of a scenario", built[key], hints[key])
    return Scenario(**built, method_options=options)


def load(name: str | Path) -> Scenario:
    """Read a scenario of the package by name, or a file by its path.

    Raises:
        UnknownScenarioError: there is no such scenario or file.
        ValueError: the file is no TOML, or `from_table` rejects it.
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
    return tuple(load(name) for name in names())


def names() -> tuple[str, ...]:
    """Names of the scenarios of the package, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


def _federation(table: object) -> Rules:
    """The rules, and with them the options of methods."""
    if not isinstance(table, Mapping):
        return read_section(Rules, table, "[federation]")
    own = {entry.name for entry in fields(Rules)} - {"options"}
    known = {name for recipe in RECIPES.values() for name in recipe.options}
    known |= {name for combinator in COMBINATORS.values() for name in combinator.options}
    for key in table:
        if key not in own | known:
            hint = _where(key, "federation") or nearest(key, [*own, *known])
            raise ValueError(
                f"[federation] has no option {key!r}.{hint} Its own: "
                f"{', '.join(sorted(own))}; those of methods: bcfl list options METHOD"
            )
    rules = {key: value for key, value in table.items() if key in own}
    options = {key: value for key, value in table.items() if key not in own}
    return replace(read_section(Rules, rules, "[federation]"), options=options)


def _where(key: str, name: str) -> str:
    """A hint at the table of a scenario to which a key of another one belongs; may be empty."""
    kinds = {**SECTIONS, "federation": Rules}
    places = [
        f"[{other}]"
        for other, kind in kinds.items()
        if other != name and key in {entry.name for entry in fields(kind)} - {"options"}
    ]
    return f" It belongs in {places[0]}." if places else ""


def _method_options(tables: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Options by method; variants of a method share its table."""
    options: dict[str, Mapping[str, Any]] = {}
    for label, table in tables.items():
        if not isinstance(table, Mapping):
            raise ValueError(f"[methods.{label}] must be a table of options, got {table!r}")
        if not isinstance(table.get(OBJECTIVE, {}), Mapping):
            raise ValueError(
                f"{OBJECTIVE} of [methods.{label}] must be a table, such as "
                f"{OBJECTIVE}.learning_rate = 0.05, got {table[OBJECTIVE]!r}"
            )
        options[Variant.of(label).method] = table
    return {name: table for name, table in options.items() if table}


def _choice(table: object, what: str, key: str) -> Choice:
    if not isinstance(table, Mapping) or not isinstance(table.get(key), str):
        raise ValueError(f"[{what}] must be a table with {key} = a name in quotes, got {table!r}")
    return Choice(table[key], {name: value for name, value in table.items() if name != key})


def _check_misplaced(section: str, table: object) -> None:
    inner = {"name", "federation", "method_options", *SECTIONS, *CHOICES}
    top = {entry.name for entry in fields(Scenario)} - inner
    keys = set(table if isinstance(table, Mapping) else ())
    for key in keys - set(getattr(SECTIONS.get(section), "__dataclass_fields__", keys)):
        if hint := _where(key, section):
            raise ValueError(f"[{section}] has no option {key!r}.{hint}")
    for key in top & keys:
        raise ValueError(
            f"{key} stands in [{section}]; it belongs at the top of the file, before any [table]"
        )


def _anchored(data: Data, folder: Path) -> Data:
    """The same with absolute paths."""
    is_there = "." in data.dataset and os.path.isfile(folder / data.dataset)
    is_path = data.dataset.lower().endswith(".npz") or os.sep in data.dataset or is_there
    dataset = _absolute(data.dataset, folder) if is_path else data.dataset
    data_dir = data.data_dir and _absolute(data.data_dir, folder)
    return replace(data, dataset=dataset, data_dir=data_dir)


def _absolute(path: str, folder: Path) -> str:
    return str((folder / Path(path).expanduser()).resolve())


def _check_distinct(what: str, values: Sequence[Hashable]) -> None:
    if not values:
        raise ValueError(f"{what} must hold at least one, got none")
    value, count = Counter(values).most_common(1)[0]
    if count > 1:
        raise ValueError(f"{what} must differ from each other, got {value!r} {count} times")


def _not_found(name: str, path: Path) -> str:
    if path.is_dir():
        return f"{name!r} is a folder; give a .toml file; to go on with a run: bcfl resume {name}"
    if Path(name).is_file():
        own = f"{Path(name).stem}:object" if Path(name).suffix == ".py" else "module:object"
        return (
            f"{name!r} is no .toml file, as a scenario is; such a file can name objects of a "
            f"Python module, as in dataset = {own!r}"
        )
    if path.parent != FOLDER:
        return f"scenario file {name!r} doesn't exist"
    hint = nearest(name, names())
    return f"unknown scenario {name!r}.{hint} All: bcfl list scenarios; your own: a .toml file"
