"""What clients answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import Tensor

from bcfl.protocol.comparison import BestCounts, SupportTest
from bcfl.protocol.prediction_sums import PredictionSums


@dataclass(frozen=True)
class ClientInfo:
    """Answer to `Describe`: samples per view, and shape of one input sample."""

    num_samples: Mapping[str, int]
    input_shape: tuple[int, ...]


@dataclass(frozen=True)
class LossSum:
    """Loss of one model on one client.

    Attributes:
        total: negative log-likelihood summed over all samples of the view, nats; estimated where
            a subset was scored.
        standard_error: of that estimate, nats; 0 where all samples were scored.
        num_samples: samples in the view.
    """

    total: float
    standard_error: float
    num_samples: int


@dataclass(frozen=True, eq=False)
class EvidenceSum:
    """Quadratic expansion of one client's log-likelihood at a model.

    Attributes:
        log_likelihood: summed over the view's samples, nats.
        gradient: (parameters,) of the log-likelihood.
        curvature: (parameters,) diagonal Gauss-Newton, summed.
        num_samples: samples in the view.
    """

    log_likelihood: float
    gradient: Tensor
    curvature: Tensor
    num_samples: int


@dataclass(frozen=True, eq=False)
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


Scores: TypeAlias = Mapping[str, LossSum] | Mapping[str, EvidenceSum]
Answer: TypeAlias = ClientInfo | Scores | PredictionSums | BestCounts | SupportTest | Trained


@dataclass(frozen=True)
class Failure:
    """Why a client gave no usable answer.

    Attributes:
        kind: `missing` (no answer), `refused`, `crashed`, or `invalid` (NaN, inf, wrong shape).
        text: one sentence for people.
    """

    kind: Literal["missing", "refused", "crashed", "invalid"]
    text: str
