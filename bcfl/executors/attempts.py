"""Work for one client, whose errors are failures of that client."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from bcfl.protocol.answers import Failure
from posteriors import UnsupportedFitError, UnsupportedLayerError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MAX_MESSAGE_LENGTH = 300


def attempted(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result | Failure:
    """The result of some work, or why there is none.

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
        return Failure("crashed", f"{type(error).__name__}: {words}" if words else repr(error))
