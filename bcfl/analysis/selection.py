"""Selective prediction and detection: whether uncertain predictions are those that are wrong.

Risks are mean losses of the most certain samples: for classes and labels, shares of errors. Where
there is no sample, or only one kind of samples to detect, a score is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, nan

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COVERAGE",
    "RECALL",
    "RISK",
    "Detection",
    "Selection",
    "detection",
    "summarise_selection",
]

Array = NDArray[np.float64]
RISK, COVERAGE, RECALL = 0.05, 0.8, 0.95
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Selection:
    """Mean loss of the k most certain of some samples, for k from 1 to all.

    Attributes:
        risks: (samples,) mean losses.
        reachable: (samples,) whether a threshold on the certainty keeps just so many.
    """

    risks: Array
    reachable: NDArray[np.bool_]

    @classmethod
    def by(cls, certainty: Array, losses: NDArray[np.float64] | NDArray[np.bool_]) -> Selection:
        """Select by a certainty; among equally certain samples, in random order.

        Args:
            certainty: (samples,) of the predictions, in any unit.
            losses: (samples,) of the predictions, or whether they are wrong.
        """
        order = np.argsort(-certainty, kind="stable")
        levels, block, sizes = np.unique(-certainty[order], return_inverse=True, return_counts=True)
        means = np.bincount(block, weights=losses[order], minlength=len(levels)) / sizes
        counts = np.arange(1, len(order) + 1)
        return cls(np.cumsum(means[block]) / counts, np.isin(counts, np.cumsum(sizes)))

    @property
    def area(self) -> float:
        """Area under the curve of risk by coverage (AURC), the mean risk over all numbers kept.

        References:
            Geifman, Uziel, El-Yaniv (2019), "Bias-reduced uncertainty estimation for deep neural
            classifiers", section 3.
        """
        return float(self.risks.mean()) if len(self.risks) else nan

    def coverage_at(self, risk: float = RISK) -> float:
        """Largest share of samples that a threshold keeps at a risk of at most `risk`; 0 if none.

        Args:
            risk: largest mean loss of the samples kept.
        """
        if not len(self.risks):
            return nan
        kept = np.flatnonzero(self.reachable & (self.risks <= risk + SLACK))
        return float(kept[-1] + 1) / len(self.risks) if len(kept) else 0.0

    def risk_at(self, coverage: float = COVERAGE) -> float:
        """Mean loss of the most certain samples, at least a share `coverage` of all.

        Args:
            coverage: least share of the samples that is kept, in (0, 1].
        """
        if not len(self.risks):
            return nan
        return float(self.risks[ceil(coverage * len(self.risks) - SLACK) - 1])


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


def summarise_selection(certainty: Array, wrong: NDArray[np.bool_]) -> dict[str, float]:
    """Scores of selecting right predictions by a certainty, and of detecting wrong ones, by name.

    Args:
        certainty: (samples,) probability that a prediction is right.
        wrong: (samples,) whether it is wrong.
    """
    selected, errors = Selection.by(certainty, wrong), detection(1 - certainty, wrong)
    return {
        "aurc": selected.area,
        "coverage_at_5_risk": selected.coverage_at(),
        "risk_at_80_coverage": selected.risk_at(),
        "wrong_auroc": errors.auroc,
        "wrong_aupr": errors.aupr,
        "wrong_fpr95": errors.fpr95,
    }


def __dir__() -> list[str]:
    return __all__
