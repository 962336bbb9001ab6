"""Console and error handling that all commands share."""

from __future__ import annotations

import errno
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer
from rich.console import Console

from bcfl.runtime import counted
from experiments.commands import completion

if TYPE_CHECKING:
    from experiments.partitions import Partition

Arguments = ParamSpec("Arguments")

OF_METHODS, OF_WORK, OF_FLOWER = "Options of methods", "Where and how it runs", "Flower"
"""Groups of options in the help of `bcfl run` and `bcfl profile`."""
ScenarioName = Annotated[
    str,
    typer.Argument(
        help="Name of a scenario, or a .toml file.",
        metavar="SCENARIO|FILE",
        autocompletion=completion.scenarios,
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Methods in place of the scenario's, such as wecfl,bcfl-g.",
        autocompletion=completion.methods,
    ),
]
MethodOfRun = Annotated[
    str | None,
    typer.Option(
        help="Method; the best of the seed if left out.", autocompletion=completion.methods_of_run
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Executor = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Executor: auto, loop, batched, graph (on a GPU), processes or flower.",
        autocompletion=completion.executors,
        rich_help_panel=OF_WORK,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory for batched work, such as 2GB.", rich_help_panel=OF_WORK
    ),
]
NumWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers", help="Number of processes of --executor processes.", rich_help_panel=OF_WORK
    ),
]
Arithmetic = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="full, or faster and less exact: tf32 on a GPU, bfloat16.",
        rich_help_panel=OF_WORK,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Ray cluster for methods and seeds: auto, ray://HOST:PORT, or local, a new one.",
        rich_help_panel=OF_WORK,
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(
        help="Nodes of --executor flower; one for each client if left out.",
        rich_help_panel=OF_FLOWER,
    ),
]
CpusPerNode = Annotated[
    float,
    typer.Option(
        help="Processors that each node of --executor flower uses.", rich_help_panel=OF_FLOWER
    ),
]
GpusPerNode = Annotated[
    float,
    typer.Option(
        help="GPUs, or share of one, that each node of --executor flower uses.",
        rich_help_panel=OF_FLOWER,
    ),
]
NOTHING_MADE, MISTAKE, INTERRUPTED = 1, 2, 130
FULL = (errno.ENOSPC, errno.EDQUOT)
OURS = ("bcfl", "experiments", "posteriors", "assignment")
PACKAGES = Path(__file__).parents[2]
"""Folder of the packages; other packages may be installed there, too."""


def console() -> Console:
    """Standard output, as plain text unless it is a terminal; brackets are text, not markup."""
    return Console(highlight=False, emoji=False, markup=False)


def sizes(partition: Partition) -> tuple[str, str]:
    """Numbers of clients and groups, or of concepts and time steps, in words.

    Args:
        partition: of a data set.
    """
    groups, steps = partition.num_groups, partition.num_steps
    known = counted(groups, "hidden group") if groups else "no known groups"
    if steps > 1:
        known = f"{counted(groups, 'concept')} over {counted(steps, 'time step')}"
    return counted(len(partition), "client"), known


def line_width(screen: Console) -> int | None:
    """Characters of a line of a table; None, no limit, for a file or another program.

    Args:
        screen: where the table is printed.
    """
    return screen.width if screen.is_terminal else None


def make_room(path: Path, option: str) -> None:
    """Check that a file can be written before anything is done, and make its folder, with a note.

    Args:
        path: of the file.
        option: that names it.

    Raises:
        ValueError: the path is that of a folder, or a file stands in its place.
        OSError: its folder cannot be made.
    """
    if path.is_dir():
        raise ValueError(f"{option} must be a file, but {path} is a folder")
    for folder in path.parents:
        if folder.is_file():
            raise ValueError(f"{option} must lie in a folder, but {folder} is a file")
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        typer.echo(f"note: made the folder {path.parent}", err=True)


def explained(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Report user errors, and libraries that end the process, as one sentence, with exit code 2.

    Raises:
        typer.Exit: of the wrapped command, with the exit code.
    """

    @wraps(command)
    def run(*args: Arguments.args, **options: Arguments.kwargs) -> None:
        try:
            with _told_warnings():
                command(*args, **options)
        except KeyboardInterrupt:
            typer.echo("bcfl: stopped", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, SystemExit) as error:
            if BrokenPipeError in (type(error), type(error.__context__)):  # by `bcfl ... | head`
                raise
            if options.get("debug"):
                traceback.print_exc()
            typer.echo(f"bcfl: {_sentence(error, command.__name__)}", err=True)
            raise typer.Exit(MISTAKE) from None

    return run


@contextmanager
def _told_warnings() -> Iterator[None]:
    """Tell the warnings of bcfl on standard error, each once and as one line."""
    told: set[str] = set()
    others = warnings.showwarning

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        *rest: Any,  # noqa: ANN401 - line number, file and line of the source
        **named: Any,  # noqa: ANN401
    ) -> None:
        if category.__module__.partition(".")[0] not in OURS and not _is_ours(filename):
            others(message, category, filename, *rest, **named)
        elif str(message) not in told:
            told.add(str(message))
            typer.echo(f"bcfl: warning: {message}", err=True)

    with warnings.catch_warnings():
        for package in OURS:
            warnings.filterwarnings("always", category=UserWarning, module=rf"{package}\b")
        warnings.showwarning = tell
        yield


def _is_ours(filename: str) -> bool:
    return any(Path(filename).is_relative_to(PACKAGES / package) for package in OURS)


def _sentence(error: BaseException, command: str) -> str:
    if isinstance(error, SystemExit):
        return f"ended by exit({error.code!r}) in a library"
    if isinstance(error, OSError) and error.errno in FULL:
        where = f" for {error.filename}" if error.filename else ""
        again = "try again"
        if command in ("run", "resume"):
            again = (
                "then `bcfl resume`, with the folder of the run, goes on, and `bcfl report` writes "
                "the report of a finished one"
            )
        return f"no space left on the disk{where}; free some, {again}"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    return "; ".join([text, *getattr(error, "__notes__", ())])
