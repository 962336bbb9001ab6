"""Sums over one client's predictions of labels, of which any number may be present."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.answers import Failure
from bcfl.protocol.checks import is_count, is_sum
from bcfl.protocol.statistics.predictions import NUM_BINS, Pooling, pooled
from bcfl.protocol.statistics.sample_values import Logits, SampleValues
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, OutputStatistic

PER_LABEL = ("correct", "predicted", "present")
PER_BIN = ("bin_counts", "bin_probability", "bin_present")


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSums:
    """Sums over a client's predictions of labels; one is predicted where it is probable.

    Attributes:
        num_samples: number of samples.
        exact: samples whose labels are all predicted rightly.
        nll: summed negative log-likelihood of all labels of a sample, nats.
        brier: squared distance of probability and label, summed over samples and labels.
        correct: (labels,) int64 samples in which a label is present and predicted.
        predicted: (labels,) int64 samples in which it is predicted.
        present: (labels,) int64 samples in which it is present.
        bin_counts: (labels, 15) int64 samples by probability of presence in (i/15, (i+1)/15].
        bin_probability: (labels, 15) summed probability of presence.
        bin_present: (labels, 15) int64 samples of the bin in which the label is present.
    """

    num_samples: int
    exact: int
    nll: float
    brier: float
    correct: NDArray[np.int64]
    predicted: NDArray[np.int64]
    present: NDArray[np.int64]
    bin_counts: NDArray[np.int64]
    bin_probability: NDArray[np.float64]
    bin_present: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        logits: Sequence[NDArray[np.float64]],
        weights: Sequence[float],
        targets: NDArray[np.float64],
    ) -> LabelSums:
        """Sums over predictions by a mixture of networks.

        Given the network labels are independent; the mixture's log-likelihood is that of all labels
        of a sample together.

        Args:
            logits: (samples, labels) of each network.
            weights: of the networks, summing to 1.
            targets: (samples, labels) of 0 and 1.
        """
        each, known = np.stack(logits), targets.astype(bool)
        shares = np.reshape(weights, (-1, 1, 1))
        logs = -np.logaddexp(0, np.where(known, -each, each)).sum(axis=2)
        probabilities = (shares * scipy.special.expit(each)).sum(axis=0)
        predicted = probabilities > 0.5
        return cls(
            num_samples=len(known),
            exact=int((predicted == known).all(axis=1).sum()),
            nll=float(-scipy.special.logsumexp(logs, axis=0, b=shares[:, :, 0]).sum()),
            brier=float(((probabilities - known) ** 2).sum()),
            correct=(predicted & known).sum(axis=0),
            predicted=predicted.sum(axis=0),
            present=known.sum(axis=0),
            bin_counts=_binned(probabilities).astype(np.int64),
            bin_probability=_binned(probabilities, probabilities),
            bin_present=_binned(probabilities, known).astype(np.int64),
        )

    @classmethod
    def total(cls, parts: Iterable[LabelSums]) -> LabelSums:
        """The sums over several clients.

        Raises:
            ValueError: there is nothing to sum.
        """
        summands = list(parts)
        if not summands:
            raise ValueError("parts must hold at least one client's sums, got none")
        first, *others = ({f.name: getattr(p, f.name) for f in fields(cls)} for p in summands)
        return cls(**{name: sum((o[name] for o in others), one) for name, one in first.items()})


def _binned(
    probabilities: NDArray[np.float64], weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """(labels, 15) weights summed over the samples whose probability lies in a bin."""
    labels = probabilities.shape[1]
    bins = np.clip(np.ceil(probabilities * NUM_BINS).astype(np.int64) - 1, 0, NUM_BINS - 1)
    summands = np.ones_like(probabilities) if weights is None else np.asarray(weights, dtype=float)
    places = bins + NUM_BINS * np.arange(labels)
    sums = np.bincount(places.ravel(), weights=summands.ravel(), minlength=NUM_BINS * labels)
    return sums.reshape(labels, NUM_BINS).astype(np.float64)


@dataclass(frozen=True)
class LabelPredictions(OutputStatistic):
    """How the mixture of the models predicts labels: `LabelSums`.

    Attributes:
        weights: mixture weight of each model, summing to 1.
        pooling: whether the models' probabilities are averaged or their logits.
    """

    weights: tuple[float, ...]
    pooling: Pooling = "probabilities"
    name: ClassVar[str] = "label_predictions"

    def fits(self, model: Model, num_models: int) -> bool:
        """Of Bernoulli likelihoods, and one weight for each model; see `Statistic.fits`."""
        return model.likelihood == "bernoulli" and 0 < num_models == len(self.weights)

    @property
    def values(self) -> SampleValues:
        """Logits."""
        return Logits()

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> LabelSums | Failure:
        """The sums over the scored samples, or a failure where a logit is NaN.

        See `OutputStatistic.combined`.
        """
        if any(np.isnan(logits).any() for logits in values):
            return Failure("invalid", "a predicted probability is NaN")
        known = targets.double().cpu().numpy().reshape(values[0].shape)
        return LabelSums.of(*pooled(values, self.weights, self.pooling), known)

    def num_bytes(self, model: Model, num_models: int) -> int:
        """Four sums, and for each label three counts and the bins; see `Statistic.num_bytes`."""
        return NUMBER_BYTES * (4 + model.num_outputs * (len(PER_LABEL) + len(PER_BIN) * NUM_BINS))

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `Statistic.part_trouble`."""
        if not isinstance(part, LabelSums) or not is_count(part.num_samples):
            return "no sums over labels"
        if not (is_sum(part.nll) and is_sum(part.brier) and 0 <= part.exact <= part.num_samples):
            return "sums over labels that cannot be"
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(PER_LABEL, (model.num_outputs,))
        shapes |= dict.fromkeys(PER_BIN, (model.num_outputs, NUM_BINS))
        for name, shape in shapes.items():
            array = np.asarray(getattr(part, name))
            usable = array.shape == shape and array.dtype.kind in "iuf"
            if not usable or not ((array >= 0) & (array <= part.num_samples)).all():
                return f"sums over labels with unusable {name}"
        return ""
