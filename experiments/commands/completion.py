"""Values that the shell completes, found without torch; mistakes complete to nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, get_args
from xml.sax.saxutils import unescape

import typer

Arguments = ParamSpec("Arguments")


def _quietly(complete: Callable[Arguments, list[str]]) -> Callable[Arguments, list[str]]:
    """Complete to nothing where names or a folder cannot be read."""

    @wraps(complete)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> list[str]:
        with suppress(ValueError, OSError, LookupError):
            return complete(*args, **options)
        return []

    return run


def _beginning(names: Iterable[str], text: str) -> list[str]:
    return [name for name in names if name.startswith(text)]


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios, and files.

    Args:
        incomplete: what has been typed.
    """
    from experiments.config.scenario import names

    files = sorted(map(str, Path().glob(f"{incomplete}*.toml"))) if incomplete else []
    return _beginning(names(), incomplete) + files


def methods(incomplete: str) -> list[str]:
    """Names of methods, the last one of a list separated by commas.

    Args:
        incomplete: what has been typed.
    """
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(_method_names(), begun)]


def _method_names() -> list[str]:
    from bcfl.methods import RECIPES, registered

    known = [recipe.title.removesuffix("M") for recipe in RECIPES.values()]
    return known + [name for name in registered("methods") if name not in RECIPES]


def with_options(incomplete: str) -> list[str]:
    """Names of methods, partitions and models.

    Args:
        incomplete: what has been typed.
    """
    from experiments.config.known import MODELS, PARTITIONS

    return _beginning([*_method_names(), *PARTITIONS, *MODELS], incomplete)


def executors(incomplete: str) -> list[str]:
    """Names of executors.

    Args:
        incomplete: what has been typed.
    """
    from bcfl.executors import ExecutorName

    return _beginning(get_args(ExecutorName), incomplete)


@_quietly
def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """METHOD.OPTION=VALUE: methods of the run, then their options, then values that have names.

    Args:
        ctx: the command with what stands before.
        incomplete: what has been typed.
    """
    from bcfl.methods import named

    method, dot, rest = incomplete.partition(".")
    if not dot:
        return [f"{name}." for name in _beginning(_of_scenario(ctx), method)]
    options = named(method).options
    option, equals, begun = rest.partition("=")
    if not equals:
        return [f"{method}.{name}=" for name in _beginning(options, option)]
    values = _beginning(_texts(options[option].hint), begun)
    return [f"{method}.{option}={value}" for value in values]


def _of_scenario(ctx: typer.Context) -> list[str]:
    """Methods of the run: those of the option, or else of the scenario."""
    from experiments.config.scenario import load

    named = ctx.params.get("methods")
    return named.split(",") if named else list(load(_argument(ctx, "scenario")).methods)


def _argument(ctx: typer.Context, name: str) -> str:
    """The first argument of the command; unread by Click where an option lacks its value."""
    return str(ctx.params.get(name) or ctx.args[0])


def _texts(hint: Any) -> list[str]:  # noqa: ANN401 - any type
    """The values of a type that have names."""
    if hint is bool:
        return ["true", "false"]
    inner = [text for part in get_args(hint) if not isinstance(part, str) for text in _texts(part)]
    return [part for part in get_args(hint) if isinstance(part, str)] + inner


def posteriors(incomplete: str) -> list[str]:
    """Names of local posteriors.

    Args:
        incomplete: what has been typed.
    """
    from bcfl.methods import named

    return _beginning(_texts(named("bcfl-g").options["posterior"].hint), incomplete)


def clusters(incomplete: str) -> list[str]:
    """A number of clusters that has a name.

    Args:
        incomplete: what has been typed.
    """
    return _beginning(["auto"], incomplete)


def tables(incomplete: str) -> list[str]:
    """Tables of papers, and the papers.

    Args:
        incomplete: what has been typed.
    """
    from experiments.published.reading import names

    papers = dict.fromkeys(name.partition("/")[0] for name in names())
    return _beginning([*papers, *names()] if "/" not in incomplete else names(), incomplete)


@_quietly
def methods_of_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """Methods of the run in a folder.

    Args:
        ctx: the command with what stands before.
        incomplete: what has been typed.
    """
    from experiments.runs.plan import read_description

    return _beginning(read_description(Path(_argument(ctx, "folder")))["methods"], incomplete)


@_quietly
def clients_of_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """Clients of a finished run, by its association graphs.

    Args:
        ctx: the command with what stands before.
        incomplete: what has been typed.
    """
    graph = min(Path(_argument(ctx, "folder")).glob("*/seed-*/graph.graphml"))
    names = re.findall(r'<node id="([^"]*)"', graph.read_text("utf-8"))
    return _beginning(map(unescape, names), incomplete)
