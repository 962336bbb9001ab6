"""Answers of clients to `Describe` and `Train`; statistics define the answers to scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True)
class Failure:
    """Why a client gave no usable answer.

    Attributes:
        kind: `missing` (no answer), `refused`, `crashed`, or `invalid` (NaN, inf, wrong shape).
        text: one sentence for people.
    """

    kind: FailureKind
    text: str
