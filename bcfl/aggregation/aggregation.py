"""From local models to cluster models: one place for weighted means and for fused Gaussians.

FedAvg's sample-weighted mean is the fusion of Gaussians whose precision is n_j for each parameter,
so methods without posteriors are the same machinery with flat ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.aggregation.buffers import pool_buffers
from bcfl.aggregation.partial_upload import seen_means
from bcfl.architecture.model import BlockSpec, Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.policy import Candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import lineage_key
from posteriors import (
    DiagonalGaussian,
    FusionRule,
    LocalPosterior,
    Memory,
    carry,
    fuse,
)


@dataclass(frozen=True)
class FusionReport:
    """What had to be done, or was noticed, when models were fused.

    Attributes:
        num_floored: curvature entries that were raised to the floor.
        outside_hull: largest share of parameters whose fused mean lies outside the range of what
            was fused. Far above 0 it says that `exact` fusion met models that are no modes.
    """

    num_floored: int = 0
    outside_hull: float = 0.0

    def __add__(self, other: FusionReport) -> FusionReport:
        return FusionReport(
            self.num_floored + other.num_floored, max(self.outside_hull, other.outside_hull)
        )


@dataclass(frozen=True)
class Contribution:
    """One training that enters a block, with its weight there, and the model it started from."""

    training: Train
    reply: Trained
    weight: float
    sent: Posterior | None

    def used(self, origin: Block) -> DiagonalGaussian:
        """The prior that the client was sent of a block; the origin's where it isn't known."""
        blocks = () if self.sent is None else self.sent.blocks
        return next((b.prior for b in blocks if b.name == origin.name), origin.prior)


@dataclass(frozen=True)
class Aggregation:
    """How the server combines local models.

    Attributes:
        fusion: `precision_weighted`, `exact` or `literal` (see `posteriors.fuse`).
        memory: what the next round's prior remembers: `replace`, `forget` or `accumulate` (see
            `posteriors.carry`); hypothesis weights follow the same memory.
        decay: share of the precision, and of the log weights, that `forget` keeps per round.
    """

    fusion: FusionRule = "precision_weighted"
    memory: Memory = "replace"
    decay: float = 0.9

    def __post_init__(self) -> None:
        one = DiagonalGaussian.isotropic(torch.zeros(1), 1.0)
        fuse(self.fusion, one, [])
        carry(self.memory, one, one, self.decay)

    def carried_log_weight(self, log_weight: float) -> float:
        """The log weight with which a hypothesis enters the next round, nats.

        `replace` carries nothing, since the next round sees the same data again.
        """
        match self.memory:
            case "accumulate":
                return log_weight
            case "forget":
                return self.decay * log_weight
            case _:
                return 0.0

    def combine(
        self,
        model: Model,
        parent: Hypothesis,
        candidate: Candidate,
        replies: Mapping[Train, Trained],
        known: dict[str, tuple[Block, FusionReport]],
        round: int,
    ) -> tuple[tuple[Posterior, ...], FusionReport]:
        """The clusters' posteriors after a round, aggregated block by block.

        Args:
            model: the architecture, with its blocks and their scopes.
            parent: hypothesis that the candidate follows.
            candidate: association with its trainings.
            replies: answered trainings; the others contribute nothing.
            known: blocks made this round, by key; extended, so that equal blocks are one object.
            round: number of the round.
        """
        origins = [origin.posterior(parent) for origin in candidate.origins]
        sent = {posterior.key: posterior for posterior in parent.clusters}
        report = FusionReport()
        columns: list[list[Block]] = [[] for _ in origins]
        for position, spec in enumerate(model.blocks):
            made: Block | None = None
            for index, origin in enumerate(origins):
                if spec.scope != "global" or made is None:
                    feeding = _contributions(spec, candidate, replies, index, sent)
                    share = _share(feeding, candidate, replies) if spec.scope != "global" else 1.0
                    made, seen = self._block(
                        model, origin.blocks[position], feeding, known, round, share
                    )
                    report += seen
                columns[index].append(made)
        clusters = []
        for origin, blocks in zip(origins, columns, strict=True):
            same = all(new is old for new, old in zip(blocks, origin.blocks, strict=True))
            clusters.append(origin if same else Posterior(tuple(blocks)))
        return tuple(clusters), report

    def _block(
        self,
        model: Model,
        origin: Block,
        feeding: Sequence[Contribution],
        known: dict[str, tuple[Block, FusionReport]],
        round: int,
        share: float,
    ) -> tuple[Block, FusionReport]:
        if not feeding:
            return self._emptied(origin, round), FusionReport()
        who = (
            (c.training.client, c.training.start, repr(c.training.objective), c.weight)
            for c in feeding
        )
        how = (self, round) if share == 1 else (self, round, share)
        key = lineage_key(origin.key, *how, *who)
        if key not in known:
            made, report = self._fuse(model, origin, feeding, key)
            known[key] = (made if share == 1 else self._moved(origin, made, share), report)
        return known[key]

    def _moved(self, origin: Block, made: Block, share: float) -> Block:
        """The block that goes only a share of the way: CAM, equation 6."""
        mean = origin.gaussian.mean + share * (made.gaussian.mean - origin.gaussian.mean)
        buffers = origin.buffers + share * (made.buffers - origin.buffers)
        gaussian = DiagonalGaussian(mean, made.gaussian.precision)
        return self.made(made.key, origin, gaussian, buffers)

    def _fuse(
        self, model: Model, origin: Block, feeding: Sequence[Contribution], key: str
    ) -> tuple[Block, FusionReport]:
        """Fuse what feeds a block.

        Only a precision vector is floored by the number of samples: one number for all parameters
        is a chosen weight, such as 1 for the plain mean.
        """
        base = carry(self.memory, origin.gaussian, origin.base, self.decay)
        local, buffers = [], []
        means = seen_means(model, origin, [(c.reply, c.weight) for c in feeding])
        for c, mean in zip(feeding, means, strict=True):
            part = model.split(c.reply.mean, c.reply.buffers)[origin.name][1]
            curvature, samples = c.reply.curvature, 1
            if curvature.ndim:
                curvature = model.split(curvature, c.reply.buffers)[origin.name][0]
                samples = c.reply.num_samples
            local.append(LocalPosterior(mean, curvature, c.used(origin), samples, c.weight))
            buffers.append(part)
        fused = fuse(self.fusion, base, local)
        pooled = pool_buffers(
            model, origin.name, buffers, [c.weight * c.reply.num_samples for c in feeding]
        )
        made = self.made(key, origin, fused.posterior, pooled)
        return made, FusionReport(fused.num_floored, fused.outside_hull)

    def made(self, key: str, origin: Block, gaussian: DiagonalGaussian, buffers: Tensor) -> Block:
        """A new block with the prior that the memory makes of its posterior."""
        precision = carry(self.memory, gaussian, origin.base, self.decay).precision
        unchanged = precision is gaussian.precision
        prior = gaussian if unchanged else DiagonalGaussian(gaussian.mean, precision)
        return Block(key, origin.name, gaussian, origin.base, prior, buffers)

    def _emptied(self, origin: Block, round: int) -> Block:
        """A block that nobody fed keeps its mean; its precision is what the memory leaves."""
        if origin.gaussian is origin.prior:
            return origin
        key = lineage_key(origin.key, "emptied", round)
        return self.made(key, origin, origin.prior, origin.buffers)


def _share(
    feeding: Sequence[Contribution], candidate: Candidate, replies: Mapping[Train, Trained]
) -> float:
    """Share of all answered samples that feeds a block; 1 unless the candidate is partial."""
    if not candidate.partial:
        return 1.0
    total = sum(replies[t].num_samples for t in candidate.trainings if t in replies)
    return sum(c.reply.num_samples for c in feeding) / max(total, 1)


def _contributions(
    spec: BlockSpec,
    candidate: Candidate,
    replies: Mapping[Train, Trained],
    index: int,
    sent: Mapping[str, Posterior],
) -> list[Contribution]:
    """Who feeds a block, in the order of the clients' names."""
    contribution_weights = (
        candidate.contribution_weights.sum(axis=1)
        if spec.scope == "global"
        else candidate.contribution_weights[:, index]
    )
    feeding = [
        Contribution(training, replies[training], float(weight), sent.get(training.start))
        for training, weight in zip(candidate.trainings, contribution_weights, strict=True)
        if weight > 0 and training in replies and training.objective.trains(spec.name)
    ]
    return sorted(feeding, key=lambda c: (c.training.client, c.training.start))
