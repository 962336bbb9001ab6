"""Splitting predictive uncertainty into noise in the data and disagreement between models."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EntropySplit:
    """Entropy of a mixture of predictions; float64 nats, one number per leading index.

    Attributes:
        total: Entropy of the averaged prediction.
        data: Average entropy of the members' predictions (aleatoric part).
        mutual_information: total - data, between the label and the member (epistemic part).
    """

    total: Tensor
    data: Tensor
    mutual_information: Tensor


def split_entropy(probabilities: Tensor, weights: Tensor | None = None) -> EntropySplit:
    """Split the entropy of a mixture of class probabilities.

    The mutual information is computed as the average divergence of the members from the mixture,
    so it keeps its digits where members nearly agree, and is never below 0.

    Args:
        probabilities: Class probabilities of each member, (members, ..., classes), rows sum to 1.
        weights: Weight of each member, (members,), at least 0, normalised here; equal by default.

    Returns:
        Total, data and mutual information, each of shape (...).

    Raises:
        ValueError: If rows don't sum to 1 (within 1e-4), entries are negative or shapes differ.
    """
    members = probabilities.double()
    if members.ndim < 2 or members.numel() == 0:
        raise ValueError(
            f"probabilities must have shape (members, ..., classes), got {tuple(members.shape)}"
        )
    sums = members.sum(-1)
    if not bool((members >= 0).all() and ((sums - 1).abs() <= 1e-4).all()):
        raise ValueError("probabilities must be at least 0 and sum to 1 over the last axis")
    shares = _normalised(weights, members)
    present = shares.flatten() > 0
    shares, members = shares[present], (members / sums.unsqueeze(-1))[present]
    mixture = (shares * members).sum(0)
    total = -torch.xlogy(mixture, mixture).sum(-1)
    data = -(shares * torch.xlogy(members, members)).sum((0, -1))
    ratio = torch.where(members > 0, members / mixture, 1.0)
    divergence = (members * ratio.log()).sum(-1)
    information = (shares.squeeze(-1) * divergence).sum(0)
    return EntropySplit(total, data, information.clamp(min=0.0))


def _normalised(weights: Tensor | None, members: Tensor) -> Tensor:
    """Weights that sum to 1, with as many axes as `members`."""
    count = len(members)
    if weights is None:
        weights = members.new_ones(count)
    weights = weights.to(members)
    valid = weights.shape == (count,) and bool((weights >= 0).all() and weights.isfinite().all())
    if not valid or float(weights.sum()) == 0:
        raise ValueError(
            f"weights must be {count} finite numbers of at least 0, not all 0, "
            f"got shape {tuple(weights.shape)}"
        )
    return (weights / weights.sum()).reshape(count, *[1] * (members.ndim - 1))
