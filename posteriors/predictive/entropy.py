"""Splitting predictive uncertainty into noise in the data and disagreement between models.

The disagreement can be split again where the models come in groups, such as draws from each of
several posteriors: into not knowing the model inside a group, and not knowing the group.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, eq=False)
class GroupedSplit:
    """Entropy of a mixture over groups of models; float64 nats, one number per leading index.

    Attributes:
        total: Entropy of the averaged prediction; data + model + association.
        data: Average entropy of the single models' predictions.
        model: Mutual information between the label and the model inside its group.
        association: Mutual information between the label and the group.
    """

    total: Tensor
    data: Tensor
    model: Tensor
    association: Tensor


def split_by_group(groups: Sequence[Tensor], weights: Tensor | None = None) -> GroupedSplit:
    """Split the entropy of a mixture over groups whose members have equal weights in the group.

    The chain rule of mutual information (Cover and Thomas, 2006, theorem 2.5.2): what the pair of
    group and member says of the label is what the group says and what the member adds.

    Args:
        groups: Class probabilities for each group, (members, ..., classes), rows sum to 1; groups
            may differ in their number of members.
        weights: Weight of each group, (groups,), at least 0, normalised here; equal by default.

    Returns:
        Total, data, model and association part, each of shape (...).

    Raises:
        ValueError: If there is no group, rows don't sum to 1 (within 1e-4), entries are negative
            or shapes differ.
    """
    if len(groups) == 0 or len({tuple(group.shape[1:]) for group in groups}) > 1:
        raise ValueError(
            "groups must hold at least one tensor (members, ..., classes) and agree in all axes "
            f"but the first, got {[tuple(group.shape) for group in groups]}"
        )
    inside = [split_entropy(group) for group in groups]
    means = torch.stack([group.double().mean(0) for group in groups])
    between = split_entropy(means, weights)
    shares = _normalised(weights, means).squeeze(-1)
    data = (shares * torch.stack([split.data for split in inside])).sum(0)
    model = (shares * torch.stack([split.mutual_information for split in inside])).sum(0)
    return GroupedSplit(between.total, data, model, between.mutual_information)


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
