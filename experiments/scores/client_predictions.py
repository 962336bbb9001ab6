"""Predictions for samples of clients, of classes, labels or numbers, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from bcfl import Prediction
from bcfl.analysis import ValuePrediction, metrics, score_values, selection, uncertainty
from bcfl.protocol import LabelSums
from posteriors.curvature.likelihood import Likelihood

Array = NDArray[np.float64]
CERTAIN = (float(np.finfo(np.float64).tiny), 1 - 2.0**-53)
"""Probabilities beyond these round to 0 and 1, and count as these."""


@dataclass(frozen=True, eq=False)
class UncertaintyScores:
    """Three measures of the uncertainty of predictions; of labels, summed over these.

    Attributes:
        entropy: (samples,) entropy of the predictive distribution, nats; of numbers, differential.
        epistemic: (samples,) mutual information of label with model and association, nats; of
            numbers, entropy beyond that of the noise.
        ood_score: (samples,) out-of-distribution score of the inputs under the client's clusters,
            nats.
    """

    entropy: Array
    epistemic: Array
    ood_score: Array

    @classmethod
    def of(cls, prediction: Prediction | ValuePrediction, rows: slice) -> UncertaintyScores:
        """Scores of some of the predicted samples.

        Args:
            prediction: prediction with OOD scores.
            rows: the samples.
        """
        if isinstance(prediction, ValuePrediction):
            epistemic = prediction.epistemic
        else:
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


def detection_scores(
    own: UncertaintyScores, ood: UncertaintyScores, noise: UncertaintyScores
) -> dict[str, float]:
    """Detection of samples of other groups and of noise, by OOD score, entropy and information."""
    scores: dict[str, float] = {}
    for source, outside in (("ood", ood), ("noise", noise)):
        positive = np.repeat([False, True], [len(own.entropy), len(outside.entropy)])
        by = {
            name: selection.detection(
                np.concatenate([getattr(own, name), getattr(outside, name)]), positive
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
    def selected(self) -> selection.Selection:
        """Wrong predictions by confidence; of labels, see `scores`."""
        if self.kind == "categorical":
            wrong = uncertainty.wrong_classes(self.probabilities, self.targets)
            return selection.Selection.by(self.probabilities.max(axis=1), wrong)
        return selection.Selection.by(*self._labels_right)

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
        """Calibration, selection and detection scores by name.

        Of labels, a prediction is right if all of them are, and its certainty the product of their
        probabilities. See `detection_scores`.
        """
        if self.kind == "categorical":
            scores = uncertainty.summarise(self.probabilities, self.targets)
        else:
            known = np.clip(self.probabilities, *CERTAIN)
            sums = LabelSums.of([logit(known)], [1.0], self.targets.astype(np.float64))
            scores = metrics.summarise_labels({"": sums})
            scores |= selection.summarise_selection(*self._labels_right)
        return scores | detection_scores(self.own, self.ood, self.noise)

    @property
    def _labels_right(self) -> tuple[Array, NDArray[np.bool_]]:
        """(samples,) probability that all labels are right, and whether one is wrong."""
        certainty = np.maximum(self.probabilities, 1 - self.probabilities).prod(axis=1)
        return certainty, ((self.probabilities > 0.5) != (self.targets > 0)).any(axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientValues:
    """Predicted numbers of one or more clients, each by its posterior membership.

    Attributes:
        mean: (samples, outputs) predicted values of the clients' test samples.
        variance: (samples, outputs) of the predictions.
        targets: (samples, outputs) true values.
        own: uncertainty of these predictions.
        ood: uncertainty on as many test samples of clients of other groups.
        noise: uncertainty on as many samples of uniform noise.
    """

    mean: Array
    variance: Array
    targets: Array
    own: UncertaintyScores
    ood: UncertaintyScores
    noise: UncertaintyScores
    kind: ClassVar[Likelihood] = "gaussian"

    @classmethod
    def joined(cls, parts: Sequence[ClientValues]) -> ClientValues:
        """Concatenate over clients."""
        return cls(
            mean=np.concatenate([part.mean for part in parts]),
            variance=np.concatenate([part.variance for part in parts]),
            targets=np.concatenate([part.targets for part in parts]),
            own=UncertaintyScores.joined([part.own for part in parts]),
            ood=UncertaintyScores.joined([part.ood for part in parts]),
            noise=UncertaintyScores.joined([part.noise for part in parts]),
        )

    def scores(self) -> dict[str, float]:
        """Scores of the Gaussian predictions, their selection by entropy, and detection by name.

        `rmse_at_80_coverage` is the error of the 80 % of least entropy; see `score_values` and
        `detection_scores`.
        """
        squared = ((self.targets - self.mean) ** 2).mean(axis=1)
        selected = selection.Selection.by(-self.own.entropy, squared)
        return {
            **score_values(self.mean, self.variance, self.targets),
            "rmse_at_80_coverage": float(np.sqrt(selected.risk_at())),
            **detection_scores(self.own, self.ood, self.noise),
        }


Predicted: TypeAlias = ClientPredictions | ClientValues
