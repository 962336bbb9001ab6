"""Answers of clients to `Describe` and `Train`; statistics define the answers to scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any, Literal

from torch import Tensor

FailureKind = Literal["missing", "refused", "crashed", "invalid"]


@dataclass(frozen=True)
class ClientInfo:
    """Answer to `Describe`.

    Attributes:
        num_samples: number of samples by name of the view.
        input_shape: of one sample, without the batch dimension.
    """

    num_samples: Mapping[str, int]
    input_shape: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """A client's model after local training.

    Attributes:
        mean: (parameters,) trained parameters.
        buffers: (buffers,) running statistics.
        curvature: (parameters,) precision of the likelihood, or one number for all parameters.
        num_samples: training samples of the client.
        sent: (parameters,) bool, which ones of global blocks the server gets to see; None is all.
    """

    mean: Tensor
    buffers: Tensor
    curvature: Tensor
    num_samples: int
    sent: Tensor | None = None


class TracebackText(Exception):
    """The traceback of an exception that was raised in another process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """Why a client gave no usable answer.

    Attributes:
        kind: `missing` (no answer), `refused`, `crashed`, or `invalid` (NaN, inf, wrong shape).
        text: one sentence for people.
        place: line of code outside this library that raised, such as `net.py:12 in forward`; empty
            where there is none, or the client is on another machine.
        error: what was raised there, if it is a fault of that code; it is not sent to other
            machines, and other processes of this one get its traceback as `TracebackText`.
    """

    kind: FailureKind
    text: str
    place: str = ""
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        error = self.error
        if error is not None and not isinstance(error, TracebackText):
            error = TracebackText("".join(format_exception(error)))
        return Failure, (self.kind, self.text, self.place, error)
