"""Scores of predicted probabilities of classes: accuracy and calibration, and all by name.

All scores are fractions but the negative log-likelihood, in nats per sample, and the Brier score,
from 0 to 2. They take (samples, classes) probabilities and (samples,) true classes. Where there is
no sample, or only one class of samples to detect, a score is NaN. Those of selective prediction and
detection are in `bcfl.analysis.selection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from bcfl.analysis.selection import summarise_selection

__all__ = [
    "Reliability",
    "accuracy",
    "adaptive_reliability",
    "binned",
    "brier",
    "nll",
    "reliability",
    "summarise",
    "wrong_classes",
]

Array = NDArray[np.float64]
Classes = NDArray[np.int64]
BINS = 15


def nll(probabilities: Array, targets: Classes) -> float:
    """Mean negative log-likelihood, nats per sample.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    if not len(targets):
        return nan
    chosen = probabilities[np.arange(len(targets)), targets]
    return float(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean())


def brier(probabilities: Array, targets: Classes) -> float:
    """Mean squared distance between the predicted distribution and the true class, 0 to 2.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    if not len(targets):
        return nan
    truth = np.eye(probabilities.shape[1])[targets]
    return float(((probabilities - truth) ** 2).sum(axis=1).mean())


def accuracy(probabilities: Array, targets: Classes) -> float:
    """Share of samples whose most probable class is the true one.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    return float(_correct(probabilities, targets).mean()) if len(targets) else nan


@dataclass(frozen=True, eq=False)
class Reliability:
    """Confidence and accuracy of samples in bins; empty bins are left out.

    Attributes:
        counts: (bins,) samples.
        confidence: (bins,) mean probability of the most probable class.
        accuracy: (bins,) share of correct predictions.
        num_bins: number of bins, empty ones included.
    """

    counts: NDArray[np.int64]
    confidence: Array
    accuracy: Array
    num_bins: int = BINS

    @property
    def expected_error(self) -> float:
        """Mean gap between confidence and accuracy, weighted by samples; NaN without any."""
        gaps = np.abs(self.confidence - self.accuracy)
        return float(np.average(gaps, weights=self.counts)) if len(gaps) else nan

    @property
    def largest_error(self) -> float:
        """Largest gap between confidence and accuracy; NaN without samples."""
        gaps = np.abs(self.confidence - self.accuracy)
        return float(gaps.max()) if len(gaps) else nan


def reliability(probabilities: Array, targets: Classes, bins: int = BINS) -> Reliability:
    """Bins of equal width, ((i - 1) / bins, i / bins].

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
        bins: number of bins.

    References:
        Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", eq. 3.
    """
    return binned(probabilities.max(axis=1), _correct(probabilities, targets), bins)


def binned(confidence: Array, correct: NDArray[np.bool_], bins: int = BINS) -> Reliability:
    """Bins of equal width of probabilities and whether what they are of came true.

    Args:
        confidence: (samples,) probabilities.
        correct: (samples,) outcomes.
        bins: number of bins.
    """
    index = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    members = [np.flatnonzero(index == number) for number in range(bins)]
    return _reliability(members, confidence, correct)


def adaptive_reliability(probabilities: Array, targets: Classes, bins: int = BINS) -> Reliability:
    """Bins that hold equally many samples, as far as they can, in the order of confidence.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
        bins: number of bins.

    References:
        Nguyen, O'Connor (2015), "Posterior calibration and exploratory analysis for natural
        language processing models", section 3.
    """
    confidence = probabilities.max(axis=1)
    members = np.array_split(np.argsort(confidence, kind="stable"), bins)
    return _reliability(members, confidence, _correct(probabilities, targets))


def summarise(probabilities: Array, targets: Classes) -> dict[str, float]:
    """All scores that need nothing but predictions and true classes, by name.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    bins = reliability(probabilities, targets)
    return {
        "accuracy": accuracy(probabilities, targets),
        "nll": nll(probabilities, targets),
        "brier": brier(probabilities, targets),
        "ece": bins.expected_error,
        "mce": bins.largest_error,
        "adaptive_ece": adaptive_reliability(probabilities, targets).expected_error,
        **summarise_selection(probabilities.max(axis=1), wrong_classes(probabilities, targets)),
    }


def wrong_classes(probabilities: Array, targets: Classes) -> NDArray[np.bool_]:
    """(samples,) whether the most probable class is not the true one.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    return ~_correct(probabilities, targets)


def _correct(probabilities: Array, targets: Classes) -> NDArray[np.bool_]:
    if probabilities.ndim != 2 or targets.shape != probabilities.shape[:1]:
        raise ValueError(
            "probabilities and targets must have shapes (samples, classes) and (samples,), got "
            f"{probabilities.shape} and {targets.shape}"
        )
    correct: NDArray[np.bool_] = probabilities.argmax(axis=1) == targets
    return correct


def _reliability(
    members: list[NDArray[np.intp]], confidence: Array, correct: NDArray[np.bool_]
) -> Reliability:
    filled = [rows for rows in members if len(rows)]
    return Reliability(
        np.array([len(rows) for rows in filled], dtype=np.int64),
        np.array([confidence[rows].mean() for rows in filled], dtype=np.float64),
        np.array([correct[rows].mean() for rows in filled], dtype=np.float64),
        len(members),
    )


def __dir__() -> list[str]:
    return __all__
