"""Where the code of users raised an error, or called these packages."""

from __future__ import annotations

import inspect
import sysconfig
import warnings
from pathlib import Path
from traceback import walk_tb
from types import FrameType

OWN = frozenset({"assignment", "bcfl", "experiments", "posteriors"})
"""Packages whose code is not the user's."""
LIBRARIES = ("site-packages", "dist-packages")


def place_of(error: BaseException) -> str:
    """Innermost line of the user's code in a traceback, such as `net.py:12 in forward`.

    Args:
        error: that was raised; code of this library, installed ones and Python is not the user's.

    Returns:
        File, line and function; empty where no line is the user's.
    """
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__) if _is_users(frame)]
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"


def callers_level() -> int:
    """The `stacklevel` by which a warning names the line that called these packages.

    Returns:
        That of the function which calls this one, and then `warnings.warn`.
    """
    level, frame = 0, inspect.currentframe()
    while frame is not None and _package(frame) in OWN | {"contextlib"}:  # of decorators
        level, frame = level + 1, frame.f_back
    return level


class DataWarning(UserWarning):
    """Data that may not be meant as they are read, or that are not whole."""


def warn_of_data(message: str) -> None:
    """Warn of data at the line that called these packages.

    Args:
        message: the warning.
    """
    warnings.warn(message, DataWarning, stacklevel=callers_level())


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _is_users(frame: FrameType) -> bool:
    """Whether code is not of these packages, an installed one or the standard library."""
    file = Path(frame.f_code.co_filename)
    installed = any(folder in file.parts for folder in LIBRARIES)
    standard = file.is_relative_to(sysconfig.get_path("stdlib")) or _package(frame) == "importlib"
    return not (installed or standard or _package(frame) in OWN)
