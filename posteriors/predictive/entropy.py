"""Decomposition of predictive entropy into aleatoric and epistemic parts.

Where models come in groups, such as draws from each of several posteriors, the epistemic part is
decomposed further into uncertainty of the model within its group and uncertainty of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EntropySplit:
    """Entropy of a mixture of predictions and its parts; (...), float64 nats.

    Attributes:
        total: Entropy of the mean prediction.
        data: Mean entropy of the members' predictions (aleatoric).
        mutual_information: total - data, mutual information of label and member (epistemic).
    """

    total: Tensor
    data: Tensor
    mutual_information: Tensor


def split_entropy(probabilities: Tensor, weights: Tensor | None = None) -> EntropySplit:
    """Decompose the entropy of a mixture of class probabilities.

    The mutual information is computed as the mean KL divergence of the members from the mixture,
    which is accurate where members nearly agree and never negative.

    Args:
        probabilities: Class probabilities of each member, (members, ..., classes), rows sum to 1.
        weights: Weight of each member, (members,), at least 0, any scale; equal by default.

    Returns:
        Total entropy, aleatoric part and mutual information, each of shape (...).

    Raises:
        ValueError: If rows do not sum to 1 (within 1e-4), entries are negative or shapes differ.
    """
    members = probabilities.double()
    if members.ndim < 2 or len(members) == 0 or members.shape[-1] == 0:
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
    # a share times a probability may underflow, the ratio of two probabilities does not
    scale = members.amax(0).clamp(min=torch.finfo(members.dtype).tiny)
    relative = members / scale
    ratio = torch.where(members > 0, relative / (shares * relative).sum(0), 1.0)
    divergence = (members * ratio.log()).sum(-1)
    information = (shares.squeeze(-1) * divergence).sum(0)
    return EntropySplit(total, data, information.clamp(min=0.0))


@dataclass(frozen=True, eq=False)
class GroupedSplit:
    """Entropy of a mixture over groups of models and its parts; (...), float64 nats.

    Attributes:
        total: Entropy of the mean prediction; data + model + association.
        data: Mean entropy of the individual predictions (aleatoric).
        model: Mutual information of the label and the model within its group.
        association: Mutual information of the label and the group.
    """

    total: Tensor
    data: Tensor
    model: Tensor
    association: Tensor


def split_by_group(groups: Sequence[Tensor], weights: Tensor | None = None) -> GroupedSplit:
    """Decompose the entropy of a mixture over groups with equally weighted members.

    By the chain rule of mutual information (Cover and Thomas, 2006, theorem 2.5.2): I(label; group,
    member) = I(label; group) + I(label; member | group).

    Args:
        groups: Class probabilities for each group, (members, ..., classes), rows sum to 1; groups
            may differ in their number of members.
        weights: Weight of each group, (groups,), at least 0, any scale; equal by default.

    Returns:
        Total, data, model and association part, each of shape (...).

    Raises:
        ValueError: If there is no group, rows do not sum to 1 (within 1e-4), entries are negative
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
    """Normalised weights, broadcastable to `members`."""
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
