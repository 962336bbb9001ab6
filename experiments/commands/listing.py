"""`bcfl list`: methods, scenarios and data sets."""

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
    SCENARIOS = "scenarios"
    DATASETS = "datasets"


@explained
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Where data sets are looked for.")] = None,
    debug: Debug = False,
) -> None:
    """List methods, scenarios or data sets."""
    del debug
    readers: Mapping[Kind, Callable[[], Sequence[Mapping[str, Any]]]] = {
        Kind.METHODS: _methods,
        Kind.SCENARIOS: _scenarios,
        Kind.DATASETS: lambda: _datasets(data_dir),
    }
    entries = readers[kind]()
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    screen, width = console(), max(len(entry["name"]) for entry in entries)
    for entry in entries:
        note = "" if entry.get("found", True) else f"   (not here: {entry['where']})"
        text = f"{entry['name']:{width}}   {entry['description']}{note}"
        screen.print(text, soft_wrap=True, markup=False)
    if kind is Kind.METHODS:
        screen.print("M is a number, as in bcfl-mh-6; suffixes go behind, as in ifca-cam-finetune")


def _methods() -> list[dict[str, str]]:
    from bcfl.methods import DESCRIPTIONS, SUFFIX_DESCRIPTIONS

    every = {**DESCRIPTIONS, **SUFFIX_DESCRIPTIONS}
    return [{"name": name, "description": text} for name, text in every.items()]


def _scenarios() -> list[dict[str, Any]]:
    from experiments.config.scenario import available

    return [
        {
            "name": one.name,
            "description": one.description,
            "dataset": one.data.dataset,
            "methods": list(one.methods),
            "seeds": list(one.seeds),
            "rounds": one.federation.rounds,
        }
        for one in available()
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
