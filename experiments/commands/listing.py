"""`bcfl list`: methods, options of a method, scenarios and data sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.shared import Debug, console, explained


class Kind(StrEnum):
    """What can be listed."""

    METHODS = "methods"
    OPTIONS = "options"
    SCENARIOS = "scenarios"
    DATASETS = "datasets"


@explained
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    method: Annotated[
        str | None, typer.Argument(help="For `options`, such as ifca-cam.", metavar="[METHOD]")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that is searched first for data.")
    ] = None,
    debug: Debug = False,
) -> None:
    """List methods, options of a method, scenarios or data sets."""
    del debug
    if (kind is Kind.OPTIONS) != (method is not None):
        raise ValueError(
            "bcfl list options takes a METHOD, such as ifca-cam; other lists take none"
        )
    readers: Mapping[Kind, Callable[[], Sequence[Mapping[str, Any]]]] = {
        Kind.METHODS: _methods,
        Kind.OPTIONS: lambda: _options(method or ""),
        Kind.SCENARIOS: lambda: _scenarios(data_dir),
        Kind.DATASETS: lambda: _datasets(data_dir),
    }
    entries = readers[kind]()
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    screen, width = console(), max(len(entry["name"]) for entry in entries)
    for entry in entries:
        note = "" if entry.get("found", True) else f"   (not here: {entry['where']})"
        source = f" ({entry['paper']})" if entry.get("paper") else ""
        text = f"{entry['name']:{width}}   {entry['description']}{source}{note}"
        screen.print(text, soft_wrap=True)
    if kind in NOTES:
        screen.print(NOTES[kind], soft_wrap=True)


NOTES = {
    Kind.METHODS: "M is a number, as in bcfl-mh-6; suffixes go behind, as in ifca-cam-finetune; "
    "fedavg+ifca is an ensemble",
    Kind.SCENARIOS: "bcfl list datasets says where to put data that are not here",
    Kind.OPTIONS: "local training: objective.learning_rate and its like, see the table [training]",
}


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


def _options(method: str) -> list[dict[str, Any]]:
    from bcfl.methods import named
    from experiments.config.variants import in_text

    return [
        {
            "name": f"{option.name}={in_text(option.default)}",
            "description": f"{option.description} [{option.allowed}]"
            + (f" (default: {option.source})" if option.source else ""),
            "option": option.name,
            "default": option.default,
            "allowed": option.allowed,
            "source": option.source,
        }
        for option in named(method).options.values()
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
        }
        for info in available(data_dir)
    ]
