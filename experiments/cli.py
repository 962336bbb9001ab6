"""The `bcfl` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from experiments.commands import (
    explain,
    federation,
    inspect,
    listing,
    preview,
    profile,
    reproduce,
    run,
    uncertainty,
)

app = typer.Typer(
    help="Clustered federated learning as probabilistic data association.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bcfl {version('bcfl')}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Clustered federated learning as probabilistic data association."""
    del version
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # modules of one's own, such as mine:load


COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Run": (listing.list_, preview.preview, run.run, run.resume, profile.profile),
    "Look at results": (
        inspect.report,
        inspect.compare,
        explain.explain,
        inspect.graph,
        uncertainty.uncertainty,
    ),
    "Papers": (reproduce.reproduce,),
}
"""Commands by their group in the help."""
for _panel, _commands in COMMANDS.items():
    for _command in _commands:
        app.command(_command.__name__.rstrip("_"), rich_help_panel=_panel)(_command)
app.add_typer(federation.app, name="federation", rich_help_panel="Real federations")


def main() -> None:
    """Run the command line; characters that the terminal doesn't have are replaced."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()


if __name__ == "__main__":
    main()
