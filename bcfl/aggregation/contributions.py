"""Which local models contribute to a block of a cluster, and with which weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from bcfl.aggregation.partial_upload import imputed_means
from bcfl.architecture.model import BlockSpec, Model
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.policy import Candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import TRAINING, Train
from posteriors import DiagonalGaussian, LocalPosterior


@dataclass(frozen=True)
class Contribution:
    """One local model that contributes to a block.

    Attributes:
        training: the training request.
        reply: the local model.
        weight: its weight in the block.
        sent: the model that it was trained from; None if unknown.
    """

    training: Train
    reply: Trained
    weight: float
    sent: Posterior | None

    @property
    def lineage(self) -> tuple[object, ...]:
        """What identifies it in the key of a block."""
        training = self.training
        views = () if training.views == TRAINING else (training.views,)
        references = (training.references,) if any(training.references) else ()
        objective = repr(training.objective)
        return (training.client, training.start, objective, self.weight, *views, *references)

    def used(self, origin: Block) -> DiagonalGaussian:
        """The prior of a block that the client was sent; the origin's if unknown."""
        blocks = () if self.sent is None else self.sent.blocks
        return next((b.prior for b in blocks if b.name == origin.name), origin.prior)


def share_of(
    inputs: Sequence[Contribution], candidate: Candidate, replies: Mapping[Train, Trained]
) -> float:
    """Share of all answered samples that contributes to a block; 1 unless partial.

    Args:
        inputs: contributions to the block.
        candidate: association with its trainings.
        replies: local models by answered training.
    """
    if not candidate.partial:
        return 1.0
    total = sum(replies[t].num_samples for t in candidate.trainings if t in replies)
    return sum(c.reply.num_samples for c in inputs) / max(total, 1)


def contributions_of(
    spec: BlockSpec,
    candidate: Candidate,
    replies: Mapping[Train, Trained],
    index: int,
    sent: Mapping[str, Posterior],
) -> list[Contribution]:
    """Contributions to a block, in the order of the clients' names.

    Args:
        spec: the block.
        candidate: association with its trainings.
        replies: local models by answered training.
        index: index of the cluster.
        sent: models that clients were sent, by key.
    """
    contribution_weights = (
        candidate.contribution_weights.sum(axis=1)
        if spec.scope == "global"
        else candidate.contribution_weights[:, index]
    )
    inputs = [
        Contribution(training, replies[training], float(weight), sent.get(training.start))
        for training, weight in zip(candidate.trainings, contribution_weights, strict=True)
        if weight > 0 and training in replies and training.objective.trains(spec.name)
    ]
    return sorted(inputs, key=lambda c: (c.training.client, c.training.start, c.training.views))


def local_posteriors(
    model: Model, origin: Block, inputs: Sequence[Contribution]
) -> tuple[list[LocalPosterior], list[Tensor]]:
    """What is fused into a block, and the running statistics that are pooled.

    Args:
        model: the architecture.
        origin: the block before the round.
        inputs: contributions to it.
    """
    local, buffers = [], []
    means = imputed_means(model, origin, [(c.reply, c.weight) for c in inputs])
    for c, mean in zip(inputs, means, strict=True):
        statistics = model.split(c.reply.mean, c.reply.buffers)[origin.name][1]
        curvature, samples = c.reply.curvature, 1
        if curvature.ndim:
            curvature = model.split(curvature, c.reply.buffers)[origin.name][0]
            samples = c.reply.num_samples
        local.append(
            LocalPosterior(
                mean=mean,
                curvature=curvature,
                used=c.used(origin),
                num_samples=samples,
                weight=c.weight,
            )
        )
        buffers.append(statistics)
    return local, buffers
