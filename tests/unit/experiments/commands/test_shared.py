"""A command that made no result never ends with status 0."""

import errno
import subprocess
import sys
import warnings

import pytest
import typer

from bcfl.analysis.rows import DamagedRunWarning
from experiments.commands.shared import explained


@pytest.mark.parametrize("code", [None, 0, 3, "a message"])
def test_a_library_that_ends_the_process_is_told(code, capsys):
    @explained
    def command():
        raise SystemExit(code)

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == 2
    assert f"ended by exit({code!r}) in a library" in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 1, 130])
def test_a_command_ends_with_a_status_of_its_own(code):
    @explained
    def command():
        raise typer.Exit(code)

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == code


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on the disk; free some"),
        (
            OSError(errno.ENOSPC, "No space", "run/a.json"),
            "no space left on the disk for run/a.json",
        ),
        (OSError(errno.EACCES, "Permission denied", "run/a.json"), "run/a.json: Permission denied"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_with_what_to_do(error, told, capsys):
    @explained
    def command():
        raise error

    with pytest.raises(typer.Exit):
        command()
    assert told in capsys.readouterr().err


def test_notes_of_an_error_are_told(capsys):
    @explained
    def command():
        error = ValueError("labels must lie between 0 and 1, got 7")
        error.add_note("raised in Patient.associate")
        raise error

    with pytest.raises(typer.Exit):
        command()
    assert "between 0 and 1, got 7; raised in Patient.associate" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error():
    listing = "[console().print('table ' * 100) for _ in range(1000)]"
    program = f"from experiments.commands.shared import *; explained(lambda: {listing})()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        assert command.stdout.read(5) == b"table"
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait() == 1


def test_a_warning_of_bcfl_is_one_line_and_told_once(capsys):
    @explained
    def command():
        for _ in range(2):
            warnings.warn("left out: a/b", DamagedRunWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        command()
    assert capsys.readouterr().err == "bcfl: warning: left out: a/b\n"


def test_a_warning_of_another_library_stays_what_it_is():
    @explained
    def command():
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    with pytest.warns(DeprecationWarning, match="old"):
        command()
