"""Predictions for samples of clients, of classes, labels or numbers, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from bcfl import Prediction
from bcfl.analysis import metrics, score_values, uncertainty
from bcfl.protocol import LabelSums
from posteriors.curvature.likelihood import Likelihood

Array = NDArray[np.float64]
CERTAIN = (float(np.finfo(np.float64).tiny), 1 - 2.0**-53)
"""Probabilities beyond these round to 0 and 1, and count as these."""


@dataclass(frozen=True, eq=False)
class UncertaintyScores:
    """Three measures of the uncertainty of predictions; of labels, summed over these.

    Attributes:
        entropy: (samples,) entropy of the predictive distribution, nats.
        epistemic: (samples,) mutual information of label with model and association, nats.
        ood_score: (samples,) out-of-distribution score of the inputs under the client's clusters,
            nats.
    """

    entropy: Array
    epistemic: Array
    ood_score: Array

    @classmethod
    def of(cls, prediction: Prediction, rows: slice) -> UncertaintyScores:
        """Scores of some of the predicted samples.

        Args:
            prediction: prediction with OOD scores.
            rows: the samples.
        """
        epistemic = prediction.model_uncertainty + prediction.association_uncertainty
        ood_score = prediction.ood_score
        assert ood_score is not None
        entropy, epistemic = (
            one if one.ndim == 1 else one.sum(axis=1) for one in (prediction.entropy, epistemic)
        )
        return cls(entropy[rows], epistemic[rows], ood_score[rows])

    @classmethod
    def joined(cls, parts: Sequence[UncertaintyScores]) -> UncertaintyScores:
        """Concatenate over samples."""
        return cls(
            np.concatenate([part.entropy for part in parts]),
            np.concatenate([part.epistemic for part in parts]),
            np.concatenate([part.ood_score for part in parts]),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientPredictions:
    """Predicted classes or labels of one or more clients, each by its posterior membership.

    Attributes:
        probabilities: (samples, classes) predictive probabilities of the clients' test samples; of
            labels, (samples, labels) that each is present.
        targets: (samples,) int64 true classes, or (samples, labels) of 0 and 1.
        own: uncertainty of these predictions.
        ood: uncertainty on as many test samples of clients of other groups.
        noise: uncertainty on as many samples of uniform noise.
    """

    probabilities: Array
    targets: NDArray[np.int64]
    own: UncertaintyScores
    ood: UncertaintyScores
    noise: UncertaintyScores

    @property
    def kind(self) -> Likelihood:
        """Likelihood of what is predicted."""
        return "categorical" if self.targets.ndim == 1 else "bernoulli"

    @property
    def bins(self) -> uncertainty.Reliability:
        """Ten bins by confidence; of labels, by the probability that one is present."""
        if self.kind == "categorical":
            return uncertainty.reliability(self.probabilities, self.targets, 10)
        return uncertainty.binned(self.probabilities.ravel(), self.targets.ravel() > 0, 10)

    @property
    def largest_entropy(self) -> float:
        """Entropy of a uniform prediction, nats."""
        outputs = self.probabilities.shape[1]
        return float(np.log(outputs) if self.kind == "categorical" else outputs * np.log(2))

    @classmethod
    def joined(cls, parts: Sequence[ClientPredictions]) -> ClientPredictions:
        """Concatenate over clients."""
        return cls(
            probabilities=np.concatenate([part.probabilities for part in parts]),
            targets=np.concatenate([part.targets for part in parts]),
            own=UncertaintyScores.joined([part.own for part in parts]),
            ood=UncertaintyScores.joined([part.ood for part in parts]),
            noise=UncertaintyScores.joined([part.noise for part in parts]),
        )

    def scores(self) -> dict[str, float]:
        """Calibration, selection and detection scores by name; no selection of labels.

        Samples of other groups and noise are detected by OOD score, entropy and mutual information.
        """
        if self.kind == "categorical":
            scores = uncertainty.summarise(self.probabilities, self.targets)
        else:
            known = np.clip(self.probabilities, *CERTAIN)
            sums = LabelSums.of([logit(known)], [1.0], self.targets.astype(np.float64))
            scores = metrics.summarise_labels({"": sums})
        for source, outside in (("ood", self.ood), ("noise", self.noise)):
            positive = np.repeat([False, True], [len(self.own.entropy), len(outside.entropy)])
            by = {
                name: uncertainty.detection(
                    np.concatenate([getattr(self.own, name), getattr(outside, name)]), positive
                )
                for name in ("ood_score", "entropy", "epistemic")
            }
            scores |= {
                f"{source}_auroc": by["ood_score"].auroc,
                f"{source}_aupr": by["ood_score"].aupr,
                f"{source}_fpr95": by["ood_score"].fpr95,
                f"{source}_auroc_entropy": by["entropy"].auroc,
                f"{source}_auroc_knowledge": by["epistemic"].auroc,
            }
        return scores


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientValues:
    """Predicted numbers of one or more clients, each by its posterior membership.

    Attributes:
        mean: (samples, outputs) predicted values of the clients' test samples.
        variance: (samples, outputs) of the predictions.
        targets: (samples, outputs) true values.
    """

    mean: Array
    variance: Array
    targets: Array
    kind: ClassVar[Likelihood] = "gaussian"

    @classmethod
    def joined(cls, parts: Sequence[ClientValues]) -> ClientValues:
        """Concatenate over clients."""
        return cls(
            mean=np.concatenate([part.mean for part in parts]),
            variance=np.concatenate([part.variance for part in parts]),
            targets=np.concatenate([part.targets for part in parts]),
        )

    def scores(self) -> dict[str, float]:
        """Scores of the Gaussian predictions, see `bcfl.analysis.score_values`."""
        return score_values(self.mean, self.variance, self.targets)


Predicted: TypeAlias = ClientPredictions | ClientValues
