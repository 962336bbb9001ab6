"""Sums over one client's predictions, from which accuracy, calibration and others follow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.answers import Failure
from bcfl.protocol.statistics.sample_values import Logits, SampleValues
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, OutputStatistic

NUM_BINS = 15
TINY = float(np.finfo(np.float64).tiny)
ROUNDED = 1e-290
"""Probabilities below this have lost digits, so that losses come from their logs."""
Pooling = Literal["probabilities", "logits"]


def pooled(
    outputs: Sequence[NDArray[np.float64]], weights: tuple[float, ...], pooling: Pooling
) -> tuple[Sequence[NDArray[np.float64]], tuple[float, ...]]:
    """Components of a mixture of networks, and their weights.

    Args:
        outputs: (samples, outputs) of each network.
        weights: of the networks, summing to 1.
        pooling: `logits` makes one component of the networks' mean outputs.
    """
    if pooling == "logits":
        return [np.average(np.stack(outputs), axis=0, weights=weights)], (1.0,)
    return outputs, weights


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionSums:
    """Sums over a client's predictions.

    Attributes:
        confusion: (classes, classes) int64, rows are true classes, columns predicted ones.
        nll: summed negative log-likelihood, nats.
        brier: summed squared distance between the predicted distribution and the true class.
        bin_counts: (15,) int64 samples per confidence bin (i/15, (i+1)/15].
        bin_confidence: (15,) summed confidence per bin.
        bin_correct: (15,) int64 correct predictions per bin.
    """

    confusion: NDArray[np.int64]
    nll: float
    brier: float
    bin_counts: NDArray[np.int64]
    bin_confidence: NDArray[np.float64]
    bin_correct: NDArray[np.int64]

    @property
    def num_samples(self) -> int:
        """Number of samples behind the sums."""
        return int(self.confusion.sum())

    @classmethod
    def of(
        cls,
        probabilities: NDArray[np.float64],
        targets: NDArray[np.int64],
        log_probabilities: NDArray[np.float64] | None = None,
    ) -> PredictionSums:
        """Sums over predictions.

        Args:
            probabilities: (samples, classes), rows sum to 1.
            targets: (samples,) true classes.
            log_probabilities: (samples, classes), for losses of classes whose probability rounds to
                0; without them such a probability counts as the least float64.
        """
        classes = probabilities.shape[1]
        predicted = probabilities.argmax(axis=1)
        confidence = probabilities.max(axis=1)
        correct = predicted == targets
        chosen = probabilities[np.arange(len(targets)), targets]
        losses = -np.log(np.maximum(chosen, TINY))
        if log_probabilities is not None:
            logs = log_probabilities[np.arange(len(targets)), targets]
            losses = np.where(chosen > ROUNDED, losses, -logs)
        bins = np.clip(np.ceil(confidence * NUM_BINS).astype(np.int64) - 1, 0, NUM_BINS - 1)
        confusion = np.bincount(targets * classes + predicted, minlength=classes**2)
        return cls(
            confusion=confusion.reshape(classes, classes),
            nll=float(losses.sum()),
            brier=float(((probabilities**2).sum(axis=1) - 2 * chosen + 1).sum()),
            bin_counts=np.bincount(bins, minlength=NUM_BINS),
            bin_confidence=np.bincount(bins, weights=confidence, minlength=NUM_BINS).astype(
                np.float64
            ),
            bin_correct=np.bincount(bins, weights=correct, minlength=NUM_BINS).astype(np.int64),
        )

    @classmethod
    def total(cls, parts: Iterable[PredictionSums]) -> PredictionSums:
        """The sums over several clients.

        Raises:
            ValueError: there is nothing to sum.
        """
        summands = list(parts)
        if not summands:
            raise ValueError("parts must hold at least one client's sums, got none")
        return cls(
            confusion=np.sum([p.confusion for p in summands], axis=0),
            nll=float(np.sum([p.nll for p in summands])),
            brier=float(np.sum([p.brier for p in summands])),
            bin_counts=np.sum([p.bin_counts for p in summands], axis=0),
            bin_confidence=np.sum([p.bin_confidence for p in summands], axis=0),
            bin_correct=np.sum([p.bin_correct for p in summands], axis=0),
        )


@dataclass(frozen=True)
class Predictions(OutputStatistic):
    """How the mixture of the models predicts classes: `PredictionSums`.

    Attributes:
        weights: mixture weight of each model, summing to 1.
        pooling: whether the models' probabilities are averaged or their logits.
    """

    weights: tuple[float, ...]
    pooling: Pooling = "probabilities"
    name: ClassVar[str] = "predictions"

    def fits(self, model: Model, num_models: int) -> bool:
        """Of a classifier, and one weight for each model; see `bcfl.protocol.Statistic.fits`."""
        return model.likelihood == "categorical" and 0 < num_models == len(self.weights)

    @property
    def values(self) -> SampleValues:
        """Logits."""
        return Logits()

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> PredictionSums | Failure:
        """The sums over the scored samples, or a failure where a prediction is NaN.

        See `bcfl.protocol.statistics.statistic.OutputStatistic.combined`.
        """
        if self.pooling == "logits":
            mixture = scipy.special.softmax(self._mean(values), axis=1)
        else:
            mixture = self._mean([torch.from_numpy(v).softmax(1).numpy() for v in values])
        if not np.isfinite(mixture).all():
            return Failure("invalid", "a predicted probability is NaN")
        classes = targets.cpu().numpy()
        rounded = mixture[np.arange(len(classes)), classes] < ROUNDED
        return PredictionSums.of(mixture, classes, self._logs(values) if rounded.any() else None)

    def _mean(self, values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """(samples, classes) weighted mean over the models."""
        mixture = np.zeros(1)
        for of_model, weight in zip(values, self.weights, strict=True):
            mixture = mixture + weight * of_model
        return mixture

    def _logs(self, values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """(samples, classes) logs of the probabilities of the mixture, from the logits."""
        if self.pooling == "logits":
            return np.asarray(scipy.special.log_softmax(self._mean(values), axis=1))
        weights = np.reshape(self.weights, (-1, 1, 1))
        logs = scipy.special.log_softmax(np.stack(values), axis=2)
        return np.asarray(scipy.special.logsumexp(logs, axis=0, b=weights))

    def num_bytes(self, model: Model, num_models: int) -> int:
        """Confusion matrix, two sums and three numbers for each bin.

        See `bcfl.protocol.Statistic.num_bytes`.
        """
        return NUMBER_BYTES * (model.num_outputs**2 + 2 + 3 * NUM_BINS)

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        if not isinstance(part, PredictionSums):
            return "no prediction sums"
        shapes = {
            "confusion": (model.num_outputs, model.num_outputs),
            "bin_counts": (NUM_BINS,),
            "bin_confidence": (NUM_BINS,),
            "bin_correct": (NUM_BINS,),
        }
        for name, shape in shapes.items():
            array = np.asarray(getattr(part, name))
            usable = array.shape == shape and array.dtype.kind in "iuf"
            if not usable or not (np.isfinite(array).all() and (array >= 0).all()):
                return f"prediction sums with unusable {name}"
        if not (math.isfinite(part.nll) and math.isfinite(part.brier)):
            return "prediction sums that are not finite"
        return ""
