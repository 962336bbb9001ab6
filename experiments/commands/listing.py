"""`bcfl list`: the names that a scenario file takes, and options of what they name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.completion import with_options
from experiments.commands.shared import Debug, console, explained


class Kind(StrEnum):
    """What can be listed."""

    SCENARIOS = "scenarios"
    DATASETS = "datasets"
    PARTITIONS = "partitions"
    MODELS = "models"
    METHODS = "methods"
    OPTIONS = "options"


@explained
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    name: Annotated[
        str | None,
        typer.Argument(
            help="For `options`: a method, partition or model, such as ifca-cam or dirichlet.",
            metavar="[NAME]",
            autocompletion=with_options,
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that is searched first for data.")
    ] = None,
    debug: Debug = False,
) -> None:
    """List what a scenario file can name, or the options of a method, partition or model."""
    del debug
    if (kind is Kind.OPTIONS) != (name is not None):
        raise ValueError(
            "bcfl list options takes the NAME of a method, partition or model, such as ifca-cam or "
            "dirichlet; other lists take none"
        )
    readers: Mapping[Kind, Callable[[], Sequence[Mapping[str, Any]]]] = {
        Kind.SCENARIOS: lambda: _scenarios(data_dir),
        Kind.DATASETS: lambda: _datasets(data_dir),
        Kind.PARTITIONS: lambda: _components("partitions"),
        Kind.MODELS: lambda: _components("models"),
        Kind.METHODS: _methods,
        Kind.OPTIONS: lambda: _options(name or ""),
    }
    entries = readers[kind]()
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    screen, width = console(), max(len(entry["name"]) for entry in entries)
    for entry in entries:
        note = _not_here(entry)
        source = f" ({entry['paper']})" if entry.get("paper") else ""
        text = f"{entry['name']:{width}}   {entry['description']}{source}{note}"
        screen.print(text, soft_wrap=True)
    if note := _note(kind, name):
        screen.print(note, soft_wrap=True)


def _not_here(entry: Mapping[str, Any]) -> str:
    """What is not available locally of what is listed, or where to obtain it."""
    if not entry.get("found", True):
        return f"   (not here: {entry['where']})"
    lacks = entry.get("lacks", ())
    domains = "domain" if len(lacks) == 1 else "domains"
    return f"   (not here: {domains} {', '.join(lacks)})" if lacks else ""


NOTES = {
    Kind.METHODS: "M is a number, as in bcfl-mh-6; suffixes go behind, as in ifca-cam-finetune; "
    "fedavg+ifca is an ensemble",
    Kind.SCENARIOS: "bcfl list datasets says where to put data that are not here",
    Kind.PARTITIONS: "for `kind` of [partition]; options: bcfl list options NAME",
    Kind.MODELS: "for `name` of [model]; options: bcfl list options NAME",
}


def _note(kind: Kind, name: str | None) -> str:
    """The last line of a list; empty where there is nothing to add."""
    if kind is not Kind.OPTIONS:
        return NOTES.get(kind, "")
    from experiments.config.components import models, partitions

    if name in partitions():
        return "keys of [partition]; the seed is that of the run, see `seeds`"
    if name in models():
        return "keys of [model]"
    return "local training: objective.learning_rate and its like, see the table [training]"


def _components(kind: str) -> list[dict[str, str]]:
    from bcfl.methods import registered
    from experiments.config.components import models, partitions

    known = {"partitions": partitions, "models": models}[kind]()
    entries = {name: one.description for name, one in known.items()}
    for name, reference in sorted(registered(kind).items()):
        entries.setdefault(name, f"of a package: {reference}")
    return [{"name": name, "description": text} for name, text in entries.items()]


def _methods() -> list[dict[str, str]]:
    from bcfl.methods import COMBINATORS, DEFAULT, RECIPES, registered

    what = "recommended to start with, at two to four times the trainings of fedavg"
    stands = f"Stands for {RECIPES[DEFAULT].example}: {what}"
    recipes = [("default", stands, "")]
    recipes += [(r.title, r.description, r.paper) for r in RECIPES.values()]
    for name, reference in sorted(registered("methods").items()):
        taken = "not available, its name is that of a method above; " if name in RECIPES else ""
        recipes.append((name, f"{taken}of a package: {reference}", ""))
    suffixes = [(f"-{c.name}", c.description, c.paper) for c in COMBINATORS.values()]
    keys = ("name", "description", "paper")
    return [dict(zip(keys, entry, strict=True)) for entry in (*recipes, *suffixes)]


def _options(name: str) -> list[dict[str, Any]]:
    from experiments.config.components import OF_THE_DATA, options_of
    from experiments.config.variants import in_text

    return [
        {
            "name": option.name
            if option.source == OF_THE_DATA
            else f"{option.name}={in_text(option.default)}",
            "description": f"{option.description} [{option.allowed}]"
            + (f" (default: {option.source})" if option.source else ""),
            "option": option.name,
            "default": option.default,
            "allowed": option.allowed,
            "source": option.source,
        }
        for option in options_of(name).values()
    ]


def _scenarios(data_dir: Path | None) -> list[dict[str, Any]]:
    from experiments.config.scenario import available

    data = {info["name"]: info for info in _datasets(data_dir)}
    return [
        {
            "name": scenario.name,
            "description": scenario.description,
            "dataset": scenario.data.dataset,
            "methods": list(scenario.methods),
            "seeds": list(scenario.seeds),
            "rounds": scenario.federation.rounds,
            "found": data[scenario.data.dataset]["found"],
            "where": f"data set {scenario.data.dataset}",
        }
        for scenario in available()
    ]


def _datasets(data_dir: Path | None) -> list[dict[str, Any]]:
    from experiments.datasets import available

    return [
        {
            "name": info.name,
            "description": info.description,
            "where": info.where,
            "found": info.found,
            "lacks": list(info.lacks),
        }
        for info in available(data_dir)
    ]
