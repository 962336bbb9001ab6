"""Local models of which the server gets to see some parameters only."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.hypotheses.posterior import Block
from bcfl.protocol.answers import Trained


def seen_means(
    model: Model, origin: Block, replies: Sequence[tuple[Trained, float]]
) -> list[Tensor]:
    """(parameters,) of a block for each reply, with what it did not send filled in.

    A parameter that was not sent is the weighted mean of those that were, so that any mean over the
    replies is that over the senders: FedWeIT's sum of masked parameters over the sum of masks. One
    that nobody sent stays as it was; FedWeIT lets every client keep its own. Blocks that stay with
    their clients are whole.

    Args:
        model: the architecture.
        origin: the block before.
        replies: with their weights.
    """
    parts = [model.split(reply.mean, reply.buffers)[origin.name][0] for reply, _ in replies]
    (spec,) = (one for one in model.blocks if one.name == origin.name)
    if spec.scope != "global" or all(reply.sent is None for reply, _ in replies):
        return parts
    shares = []
    for reply, weight in replies:
        everything = torch.ones_like(reply.mean, dtype=torch.bool)
        sent = everything if reply.sent is None else reply.sent
        chosen = model.split(sent, reply.buffers)[origin.name][0].double()
        curvature = reply.curvature
        if curvature.ndim:
            curvature = model.split(curvature, reply.buffers)[origin.name][0]
        shares.append(weight * curvature.double() * chosen)
    mass = torch.stack(shares).sum(dim=0)
    total = torch.stack([s * part.double() for s, part in zip(shares, parts, strict=True)]).sum(0)
    before = origin.gaussian.mean.double()
    known = torch.where(mass > 0, total / mass.clamp(min=torch.finfo(mass.dtype).tiny), before)
    return [
        torch.where(share > 0, part, known.to(part))
        for share, part in zip(shares, parts, strict=True)
    ]
