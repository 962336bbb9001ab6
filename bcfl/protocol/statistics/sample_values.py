"""Per-sample values of a network's outputs, shared by the statistics of outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from posteriors.curvature.likelihood import Likelihood, negative_log_likelihood


class SampleValues(Protocol):
    """Values per sample; a frozen value object, compared by value."""

    def __call__(self, likelihood: Likelihood, outputs: Tensor, targets: Tensor) -> Tensor:
        """(samples, ...) float64.

        Args:
            likelihood: how outputs become probabilities.
            outputs: (samples, outputs) of a network; the samples of several may be concatenated.
            targets: (samples,) classes, or (samples, outputs) values.
        """
        ...


def sample_losses(likelihood: Likelihood, outputs: Tensor, targets: Tensor) -> Tensor:
    """(samples,) float64 negative log-likelihood of each sample, nats, from the outputs.

    Args:
        likelihood: of the model.
        outputs: (samples, outputs) of the network.
        targets: (samples,) classes or (samples, outputs) values.
    """
    return negative_log_likelihood(outputs.double(), targets, likelihood)


def capped(losses: Tensor, correct: Tensor, num_classes: int) -> Tensor:
    """(samples,) losses, where misclassified samples cost log(classes), as a uniform guess does.

    Args:
        losses: (samples,) negative log-likelihood, nats; those that are not finite stay.
        correct: (samples,) whether the most probable class is the right one.
        num_classes: number of classes.
    """
    return torch.where(losses.isfinite() & ~correct, math.log(num_classes), losses)


@dataclass(frozen=True)
class Losses:
    """(samples,) negative log-likelihood, nats."""

    def __call__(self, likelihood: Likelihood, outputs: Tensor, targets: Tensor) -> Tensor:
        """See `SampleValues`."""
        return sample_losses(likelihood, outputs, targets)


@dataclass(frozen=True)
class CappedLosses:
    """(samples, 2) capped losses, nats, and 1 where the most probable class is right."""

    def __call__(self, likelihood: Likelihood, outputs: Tensor, targets: Tensor) -> Tensor:
        """See `SampleValues`."""
        losses = sample_losses(likelihood, outputs, targets)
        correct = outputs.argmax(1) == targets
        columns = [capped(losses, correct, outputs.shape[1]), correct.double()]
        return torch.stack(columns, dim=1)


@dataclass(frozen=True)
class Logits:
    """(samples, classes) logits."""

    def __call__(self, likelihood: Likelihood, outputs: Tensor, targets: Tensor) -> Tensor:
        """See `SampleValues`."""
        return outputs.double()


LOSSES = Losses()
