"""Scores of predicted probabilities: calibration, selective prediction and detection.

All scores are fractions but the negative log-likelihood, in nats per sample, and the Brier score,
from 0 to 2. They take (samples, classes) probabilities and (samples,) true classes. Where there is
no sample, or only one class of samples to detect, a score is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, nan

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Classes = NDArray[np.int64]
BINS = 15
RISK, COVERAGE, RECALL = 0.05, 0.8, 0.95
SLACK = 1e-9


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
    """

    counts: NDArray[np.int64]
    confidence: Array
    accuracy: Array

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


def risk_by_coverage(probabilities: Array, targets: Classes) -> tuple[Array, NDArray[np.bool_]]:
    """Share of errors among the k most confident predictions, for k from 1 to all.

    Among equally confident samples the risk is that of a random order.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.

    Returns:
        (samples,) risks, and (samples,) whether a threshold on the confidence keeps just so many.
    """
    confidence = probabilities.max(axis=1)
    order = np.argsort(-confidence, kind="stable")
    wrong = ~_correct(probabilities, targets)[order]
    levels, block, sizes = np.unique(-confidence[order], return_inverse=True, return_counts=True)
    errors = np.bincount(block, weights=wrong, minlength=len(levels)) / sizes
    counts = np.arange(1, len(order) + 1)
    return np.cumsum(errors[block]) / counts, np.isin(counts, np.cumsum(sizes))


def aurc(probabilities: Array, targets: Classes) -> float:
    """Area under the risk-coverage curve: mean risk over all numbers of samples kept.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.

    References:
        Geifman, Uziel, El-Yaniv (2019), "Bias-reduced uncertainty estimation for deep neural
        classifiers", section 3.
    """
    risks, _ = risk_by_coverage(probabilities, targets)
    return float(risks.mean()) if len(risks) else nan


def coverage_at_risk(probabilities: Array, targets: Classes, risk: float = RISK) -> float:
    """Largest share of samples that a threshold keeps at a risk of at most `risk`; 0 if none.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
        risk: largest share of errors among the samples kept.
    """
    risks, reachable = risk_by_coverage(probabilities, targets)
    if not len(risks):
        return nan
    kept = np.flatnonzero(reachable & (risks <= risk + SLACK))
    return float(kept[-1] + 1) / len(risks) if len(kept) else 0.0


def risk_at_coverage(probabilities: Array, targets: Classes, coverage: float = COVERAGE) -> float:
    """Share of errors among the most confident samples, at least a share `coverage` of all.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
        coverage: least share of the samples that is kept, in (0, 1].
    """
    risks, _ = risk_by_coverage(probabilities, targets)
    return float(risks[ceil(coverage * len(risks) - SLACK) - 1]) if len(risks) else nan


@dataclass(frozen=True)
class Detection:
    """How well a score separates positive from negative samples.

    Attributes:
        auroc: area under the receiver operating characteristic; .5 by chance.
        aupr: average precision; the share of positive samples by chance.
        fpr95: false positive rate at a true positive rate of 95 %.
    """

    auroc: float
    aupr: float
    fpr95: float


def detection(score: Array, positive: NDArray[np.bool_]) -> Detection:
    """Detection of positive samples by a threshold on a score.

    Args:
        score: (samples,) higher for positive samples.
        positive: (samples,) whether a sample is positive.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

    if positive.all() or not positive.any():
        return Detection(nan, nan, nan)
    false, true, _ = roc_curve(positive, score, drop_intermediate=False)
    return Detection(
        float(roc_auc_score(positive, score)),
        float(average_precision_score(positive, score)),
        float(false[true >= RECALL - SLACK].min()),
    )


def misclassification(probabilities: Array, targets: Classes) -> Detection:
    """Detect wrong predictions by their low confidence.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    return detection(1 - probabilities.max(axis=1), ~_correct(probabilities, targets))


def summarise(probabilities: Array, targets: Classes) -> dict[str, float]:
    """All scores that need nothing but predictions and true classes, by name.

    Args:
        probabilities: (samples, classes) predicted probabilities.
        targets: (samples,) true classes, integers.
    """
    bins = reliability(probabilities, targets)
    errors = misclassification(probabilities, targets)
    return {
        "accuracy": accuracy(probabilities, targets),
        "nll": nll(probabilities, targets),
        "brier": brier(probabilities, targets),
        "ece": bins.expected_error,
        "mce": bins.largest_error,
        "adaptive_ece": adaptive_reliability(probabilities, targets).expected_error,
        "aurc": aurc(probabilities, targets),
        "coverage_at_5_risk": coverage_at_risk(probabilities, targets),
        "risk_at_80_coverage": risk_at_coverage(probabilities, targets),
        "wrong_auroc": errors.auroc,
        "wrong_aupr": errors.aupr,
        "wrong_fpr95": errors.fpr95,
    }


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
    )
