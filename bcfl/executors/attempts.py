"""Work for one client, whose errors are failures of that client."""

from __future__ import annotations

from collections.abc import Callable
from traceback import clear_frames
from typing import ParamSpec, TypeVar

import torch

from bcfl.protocol.answers import Failure
from bcfl.runtime.user_code import place_of
from posteriors import UnsupportedFitError, UnsupportedLayerError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MAX_MESSAGE_LENGTH = 300
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
        told, place = f"{type(error).__name__}: {words}" if words else repr(error), place_of(error)
        clear_frames(error.__traceback__)
        fault = error if place and not isinstance(error, NO_FAULT) else None
        return Failure("crashed", told + f", at {place}" * bool(place), place, fault)
