"""Predictions of a mixture of posteriors, with their entropy decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from posteriors.predictive.entropy import GroupedSplit, split_by_group
from posteriors.predictive.predictive import Predictive


@dataclass(frozen=True, eq=False)
class MixturePrediction:
    """Predictive distribution of a mixture of posteriors.

    Attributes:
        probabilities: Mean class probabilities, (samples, classes), float64; of `EachLabel`,
            (samples, labels, 2).
        uncertainty: Entropy, (samples,) or (samples, labels), nats, decomposed into data noise,
            parameter uncertainty within a posterior, and uncertainty of the posterior.
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

    The mean and all parts of its entropy are computed from the same draws, so that they add up.

    Args:
        components: Predictives of the posteriors, at least one.
        weights: Weights of the components, (components,), at least 0, any scale; components of
            weight 0 are not evaluated.
        inputs: Inputs, (samples, ...).
        num_members: Number of draws from each posterior.
        generator: Source of randomness.

    Returns:
        The mean probabilities (samples, classes) and the parts of their entropy (samples,), nats.

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
    groups = [
        components[i].member_logits(inputs, num_members, generator).softmax(-1) for i in present
    ]
    shares = weights[present].double()
    split = split_by_group(groups, shares)
    means = torch.stack([group.mean(0) for group in groups])
    mean = torch.tensordot((shares / shares.sum()).to(means.device), means, 1)
    return MixturePrediction(mean, split)
