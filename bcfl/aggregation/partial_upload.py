"""Aggregation of partially uploaded local models (FedWeIT's sparse masks)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.hypotheses.posterior import Block
from bcfl.protocol.answers import Trained


def imputed_means(
    model: Model, origin: Block, replies: Sequence[tuple[Trained, float]]
) -> list[Tensor]:
    """Means of a block for each reply, with parameters that were not sent filled in.

    A missing parameter is imputed by the weighted mean over its senders, so that any mean over the
    replies equals that over the senders: FedWeIT's sum of masked parameters over the sum of masks.
    One that no client sent keeps its value; in FedWeIT every client keeps its own. Blocks that are
    not of global scope are complete.

    Args:
        model: the architecture.
        origin: the block before the round.
        replies: local models with their weights.

    Returns:
        (parameters,) for each reply.
    """
    means = [model.split(reply.mean, reply.buffers)[origin.name][0] for reply, _ in replies]
    (spec,) = (spec for spec in model.blocks if spec.name == origin.name)
    if spec.scope != "global" or all(reply.sent is None for reply, _ in replies):
        return means
    shares = []
    for reply, weight in replies:
        everything = torch.ones_like(reply.mean, dtype=torch.bool)
        sent = everything if reply.sent is None else reply.sent
        mask = model.split(sent, reply.buffers)[origin.name][0].double()
        curvature = reply.curvature
        if curvature.ndim:
            curvature = model.split(curvature, reply.buffers)[origin.name][0]
        shares.append(weight * curvature.double() * mask)
    mass = torch.stack(shares).sum(dim=0)
    total = torch.stack([s * mean.double() for s, mean in zip(shares, means, strict=True)]).sum(0)
    before = origin.gaussian.mean.double()
    imputed = torch.where(mass > 0, total / mass.clamp(min=torch.finfo(mass.dtype).tiny), before)
    return [
        torch.where(share > 0, mean, imputed.to(mean))
        for share, mean in zip(shares, means, strict=True)
    ]
