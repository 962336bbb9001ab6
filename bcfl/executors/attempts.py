"""Work for one client, whose errors are failures of that client."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from traceback import clear_frames, walk_tb
from types import FrameType
from typing import ParamSpec, TypeVar

import torch

from bcfl.protocol.answers import Failure
from posteriors import UnsupportedFitError, UnsupportedLayerError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MAX_MESSAGE_LENGTH = 300
OWN = frozenset({"assignment", "bcfl", "experiments", "posteriors"})
"""Packages whose code is not the user's."""
LIBRARIES = ("site-packages", "dist-packages")
NO_FAULT = (OSError, MemoryError, torch.OutOfMemoryError, SystemExit)
"""Errors that need not be faults of the code that raises them."""


def attempted(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result | Failure:
    """The result of some work, or why there is none.

    A failure names the innermost line of code that is neither of this library nor of an installed
    one, such as that of the network. Local variables of the traceback are released.

    Args:
        work: for a single client; `SystemExit` counts as an error too.
        arguments: of the work.
        named: keyword arguments of the work.

    Raises:
        UnsupportedFitError: the method does not suit the model, whichever the client is.
        UnsupportedLayerError: the model has no exact curvature.
    """
    try:
        return work(*arguments, **named)
    except (UnsupportedFitError, UnsupportedLayerError):
        raise
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())[:MAX_MESSAGE_LENGTH]
        told, place = f"{type(error).__name__}: {words}" if words else repr(error), _place(error)
        clear_frames(error.__traceback__)
        fault = error if place and not isinstance(error, NO_FAULT) else None
        return Failure("crashed", told + f", at {place}" * bool(place), place, fault)


def _place(error: BaseException) -> str:
    """Innermost line of the user's code in a traceback; empty where there is none."""
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__) if _is_users(frame)]
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"


def _is_users(frame: FrameType) -> bool:
    """Whether code is not of these packages, an installed one or the standard library."""
    name, file = str(frame.f_globals.get("__name__")), Path(frame.f_code.co_filename)
    installed = any(folder in file.parts for folder in LIBRARIES)
    standard = file.is_relative_to(sysconfig.get_path("stdlib")) or name.startswith("importlib")
    return not (installed or standard or name.partition(".")[0] in OWN)
