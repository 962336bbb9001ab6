"""Predictions of a mixture of posteriors, with their uncertainty taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from posteriors.predictive.entropy import GroupedSplit, split_by_group
from posteriors.predictive.predictive import Predictive


@dataclass(frozen=True, eq=False)
class MixturePrediction:
    """What a mixture of posteriors says of some inputs.

    Attributes:
        probabilities: Averaged class probabilities, (samples, classes), float64.
        uncertainty: Entropy, (samples,), in nats, split into noise in the data, not knowing the
            model of a posterior, and not knowing which posterior applies.
    """

    probabilities: Tensor
    uncertainty: GroupedSplit


def predict_mixture(
    components: Sequence[Predictive],
    weights: Tensor,
    inputs: Tensor,
    num_members: int,
    generator: torch.Generator,
) -> MixturePrediction:
    """Average the predictions of several posteriors, each represented by draws.

    All parts of the uncertainty, and the average, come from the same draws, so that they add up.

    Args:
        components: Predictives of the posteriors, at least one.
        weights: Their weights, (components,), at least 0, normalised here; those of weight 0 are
            not evaluated.
        inputs: Inputs, (samples, ...).
        num_members: Draws from each posterior.
        generator: Source of the draws.

    Raises:
        ValueError: If numbers differ, all weights are 0 or one is negative.
    """
    valid = weights.shape == (len(components),) and bool((weights >= 0).all())
    if not valid or float(weights.sum()) == 0:
        raise ValueError(
            f"weights must be {len(components)} numbers of at least 0, not all 0, "
            f"got shape {tuple(weights.shape)}"
        )
    present = (weights > 0).nonzero().flatten().tolist()
    groups = [components[i].members(inputs, num_members, generator) for i in present]
    shares = weights[present].double()
    split = split_by_group(groups, shares)
    means = torch.stack([group.mean(0) for group in groups])
    mean = torch.tensordot((shares / shares.sum()).to(means.device), means, 1)
    return MixturePrediction(mean, split)
