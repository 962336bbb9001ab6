"""`bcfl federation`: federations on Flower whose clients hold their samples themselves."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared import Debug, console, explained

app = typer.Typer(
    help="Set up, watch and resume a federation on a network.",
    no_args_is_help=True,
)
Folder = Annotated[Path, typer.Argument(help="Folder of a federation.", metavar="DIR")]


@app.command()
@explained
def init(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.", metavar="DIR")],
    *,
    clients: Annotated[
        str, typer.Option(help="Number of clients, or their names such as anna,ben.")
    ] = "3",
    host: Annotated[
        str, typer.Option(help="Name or address under which nodes reach the server.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the server.")] = 8000,
    privacy: Annotated[
        bool,
        typer.Option(
            "--privacy",
            help="Let nodes clip what they send and add noise; see privacy in app/pyproject.toml.",
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Write a Flower app with certificates, keys, trial data and start scripts."""
    del debug
    from experiments.commands.overrides import items
    from experiments.deployment import Project, write_project

    count = int(clients) if clients.isdecimal() else 0
    numbered = tuple(f"client-{number}" for number in range(1, count + 1))
    names = numbered if clients.isdecimal() else tuple(items(clients))
    project = Project(folder=folder, clients=names, host=host, port=port)
    if privacy:
        from bcfl.executors import Privacy

        project = replace(project, privacy=Privacy())
    write_project(project)
    for line in (
        f"sh {folder}/superlink.sh          the server; leave it running",
        f"sh {folder}/register.sh           once: the keys of the nodes",
        *(f"sh {project.node(name)}/start.sh   a node; leave it running" for name in names),
        f"sh {folder}/run.sh                the run, with its log",
        f"bcfl federation status {folder}   how far it is",
    ):
        console().print(line, soft_wrap=True)


@app.command()
@explained
def status(folder: Folder, *, debug: Debug = False) -> None:
    """Show rounds, failures and the checkpoint from which the run would continue."""
    del debug
    from experiments.deployment import status_lines

    for line in status_lines(_run_folder(folder)):
        console().print(line, soft_wrap=True)


@app.command()
@explained
def resume(folder: Folder, *, debug: Debug = False) -> None:
    """Start the run again, from the newest checkpoint in its folder, and show its log."""
    del debug
    from experiments.deployment import status_lines

    console().print(status_lines(_run_folder(folder))[-1], soft_wrap=True)
    script = folder / "run.sh"
    if not script.is_file():
        raise ValueError(f"{folder} has no run.sh; give a folder that `bcfl federation init` wrote")
    beside = str(Path(sys.executable).parent)
    paths = os.pathsep.join((beside, os.environ.get("PATH", "")))
    shell = shutil.which("sh") or "/bin/sh"
    os.execve(shell, [shell, str(script)], os.environ | {"PATH": paths})


def _run_folder(folder: Path) -> Path:
    """The run folder of a federation, or the folder itself where it is one."""
    inner = folder / "run"
    return inner if inner.is_dir() else folder
