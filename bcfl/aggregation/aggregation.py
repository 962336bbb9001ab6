"""Aggregation of local models into cluster models: weighted means and fusion of Gaussians.

FedAvg's sample-weighted mean is the fusion of Gaussians with precision n_j I (BCFL, Eq. 8), so
methods without posteriors use the same code with flat posteriors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
from torch import Tensor

from bcfl.aggregation.buffers import pool_buffers
from bcfl.aggregation.contributions import (
    Contribution,
    contributions_of,
    local_posteriors,
    share_of,
)
from bcfl.aggregation.robust import RobustMean, check_averaged, robust_mean
from bcfl.aggregation.server_optimizer import TAKE_MEAN, ServerOptimizer
from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.policy import Candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Train
from bcfl.runtime import as_given, is_real
from bcfl.runtime.seeds import lineage_key
from posteriors import (
    DiagonalGaussian,
    FusionRule,
    LocalPosterior,
    Memory,
    carry,
    fuse,
)
from posteriors.torch_state import standard_switches


@dataclass(frozen=True)
class FusionReport:
    """Diagnostics of the fusion of models.

    Attributes:
        num_floored: number of curvature entries that were raised to the floor.
        outside_hull: largest share of parameters whose fused mean lies outside the range of the
            fused models. Far above 0 it indicates `exact` fusion of models that are not modes.
        outweighed: largest share of parameters whose precision has grown so large that data no
            longer move them, see `posteriors.Fused`.
    """

    num_floored: int = 0
    outside_hull: float = 0.0
    outweighed: float = 0.0

    def __add__(self, other: FusionReport) -> FusionReport:
        return FusionReport(
            self.num_floored + other.num_floored,
            max(self.outside_hull, other.outside_hull),
            max(self.outweighed, other.outweighed),
        )


MODEL_FIELDS = ("fusion", "memory", "decay", "server")


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """How the server combines local models.

    Attributes:
        fusion: `precision_weighted`, `exact`, `literal` or `normalised` (see `posteriors.fuse`).
        memory: prior of the next round: `replace`, `forget` or `accumulate` (see
            `posteriors.carry`).
        decay: share of the precision, and of the log weights, that `forget` retains per round.
        server: how a cluster moves to the mean of its clients' models.
        history_weights: the same of the log weights of hypotheses; None is as `memory`. Models do
            not depend on it, nor do their keys.
        robust: what takes the place of the weighted mean of parameters and running statistics, and
            bounds what few clients can do to it; None is the mean.
    """

    fusion: FusionRule = "precision_weighted"
    memory: Memory = "replace"
    decay: float = 0.9
    server: ServerOptimizer = TAKE_MEAN
    history_weights: Memory | None = None
    robust: RobustMean | None = None

    @standard_switches()
    def __post_init__(self) -> None:
        if not is_real(self.decay):
            raise ValueError(f"decay must be a number in [0, 1], got {self.decay!r}")
        if not _has(self.server, "step"):
            raise TypeError(f"server must have `step`, got {as_given(self.server)}")
        if self.robust is not None and not _has(self.robust, "of"):
            raise TypeError(f"robust must have `of`, or be None, got {as_given(self.robust)}")
        self._check_names()
        unit = DiagonalGaussian.isotropic(torch.zeros(1), 1.0)
        carry(self.memory, unit, unit, self.decay)

    def _check_names(self) -> None:
        if self.fusion not in get_args(FusionRule):
            raise ValueError(
                f"fusion must be one of {', '.join(get_args(FusionRule))}, got {self.fusion!r}"
            )
        if self.history_weights not in (None, *get_args(Memory)):
            raise ValueError(
                f"history_weights must be None or one of {', '.join(get_args(Memory))}, got "
                f"{self.history_weights!r}"
            )

    @property
    def _fusion(self) -> str:
        """What models depend on, as part of their keys."""
        fields = MODEL_FIELDS if self.robust is None else (*MODEL_FIELDS, "robust")
        parts = (f"{name}={getattr(self, name)!r}" for name in fields)
        return f"Aggregation({', '.join(parts)})"

    def check(self, objective: Objective) -> None:
        """Check that local models of an objective can be combined.

        Args:
            objective: of local training.

        Raises:
            ValueError: a robust mean is asked for, but the models are not averaged, or not wholly
                sent.
        """
        if self.robust is not None:
            check_averaged(self.robust, objective, self.fusion)

    def carried_log_weight(self, log_weight: float) -> float:
        """The log weight with which a hypothesis enters the next round, nats.

        `replace` carries no weight, since the next round has the same data again; `accumulate`
        ranks whole histories (BCFL, equations 10 and 11).
        """
        match self.history_weights or self.memory:
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
        cache: dict[str, tuple[Block, FusionReport]],
        round: int,
    ) -> tuple[tuple[Posterior, ...], FusionReport]:
        """The clusters' posteriors after a round, aggregated block by block.

        Args:
            model: the architecture, with its blocks and their scopes.
            parent: hypothesis that the candidate follows.
            candidate: association with its trainings.
            replies: local models by answered training; the others contribute nothing.
            cache: blocks of this round, by key; extended, so that equal blocks are one object.
            round: number of the round.

        Returns:
            The posterior of each cluster, and diagnostics.
        """
        origins = [origin.posterior(parent) for origin in candidate.origins]
        sent = {posterior.key: posterior for posterior in parent.clusters}
        report = FusionReport()
        columns: list[list[Block]] = [[] for _ in origins]
        for position, spec in enumerate(model.blocks):
            block: Block | None = None
            for index, origin in enumerate(origins):
                if spec.scope != "global" or block is None:
                    inputs = contributions_of(spec, candidate, replies, index, sent)
                    share = share_of(inputs, candidate, replies) if spec.scope != "global" else 1.0
                    block, fusion = self._block(
                        model, origin.blocks[position], inputs, cache, round, share
                    )
                    report += fusion
                columns[index].append(block)
        clusters = []
        for origin, blocks in zip(origins, columns, strict=True):
            same = all(new is old for new, old in zip(blocks, origin.blocks, strict=True))
            clusters.append(origin if same else Posterior(tuple(blocks)))
        return tuple(clusters), report

    def _block(
        self,
        model: Model,
        origin: Block,
        inputs: Sequence[Contribution],
        cache: dict[str, tuple[Block, FusionReport]],
        round: int,
        share: float,
    ) -> tuple[Block, FusionReport]:
        if not inputs:
            return self._emptied(origin, round), FusionReport()
        contributors = (c.lineage for c in inputs)
        rule = (self._fusion, round) if share == 1 else (self._fusion, round, share)
        key = lineage_key(origin.key, *rule, *contributors)
        if key not in cache:
            fused, report = self._fuse(model, origin, inputs, key)
            cache[key] = (fused if share == 1 else partial_step(self, origin, fused, share), report)
        return cache[key]

    def _fuse(
        self, model: Model, origin: Block, inputs: Sequence[Contribution], key: str
    ) -> tuple[Block, FusionReport]:
        """Fuse the contributions to a block.

        Only a precision vector is floored by the number of samples: a scalar precision is a chosen
        weight, such as 1 for the unweighted mean.
        """
        base = carry(self.memory, origin.gaussian, origin.base, self.decay)
        local, buffers = local_posteriors(model, origin, inputs)
        fused = fuse(self.fusion, base, local)
        pooled = pooled_buffers(self, model, origin, buffers, inputs)
        averaged = robustly(self, fused.posterior, local, inputs).mean
        mean, moments = self.server.step(origin.gaussian.mean, averaged, origin.moments)
        moved = replace(fused.posterior, mean=mean)
        block = replace(self.updated(key, origin, moved, pooled), moments=moments)
        return block, FusionReport(fused.num_floored, fused.outside_hull, fused.outweighed)

    def updated(
        self, key: str, origin: Block, gaussian: DiagonalGaussian, buffers: Tensor
    ) -> Block:
        """The block after an update, with the prior that the memory derives from its posterior.

        Args:
            key: lineage key of the new block.
            origin: block that it continues from.
            gaussian: new posterior; mean of shape (parameters,).
            buffers: (buffers,) new running statistics.
        """
        precision = carry(self.memory, gaussian, origin.base, self.decay).precision
        unchanged = precision is gaussian.precision
        prior = gaussian if unchanged else DiagonalGaussian(gaussian.mean, precision)
        return Block(
            key=key,
            name=origin.name,
            gaussian=gaussian,
            base=origin.base,
            prior=prior,
            buffers=buffers,
        )

    def _emptied(self, origin: Block, round: int) -> Block:
        """A block without contributions: same mean, with the precision that the memory leaves."""
        if origin.gaussian is origin.prior:
            return origin
        key = lineage_key(origin.key, "emptied", round)
        emptied = self.updated(key, origin, origin.prior, origin.buffers)
        return replace(emptied, moments=origin.moments)


def _has(part: object, name: str) -> bool:
    """Whether an object, not only its class, has a method."""
    return not isinstance(part, type) and hasattr(part, name)


def pooled_buffers(
    aggregation: Aggregation,
    model: Model,
    origin: Block,
    buffers: Sequence[Tensor],
    inputs: Sequence[Contribution],
) -> Tensor:
    """Running statistics of a block, (buffers,).

    Args:
        aggregation: how clusters are aggregated.
        model: the architecture.
        origin: the block before the round.
        buffers: (buffers,) running statistics of each contribution, at least one.
        inputs: the contributions.
    """
    if aggregation.robust is None or buffers[0].numel() == 0:
        counts = [c.weight * c.reply.num_samples for c in inputs]
        return pool_buffers(model, origin.name, buffers, counts)
    return robust_mean(aggregation.robust, buffers, inputs)


def robustly(
    aggregation: Aggregation,
    gaussian: DiagonalGaussian,
    local: Sequence[LocalPosterior],
    inputs: Sequence[Contribution],
) -> DiagonalGaussian:
    """A fused Gaussian around the robust mean, if there is one.

    Args:
        aggregation: how clusters are aggregated.
        gaussian: of all the local posteriors.
        local: those that are fused.
        inputs: contributions that they belong to.
    """
    if aggregation.robust is None:
        return gaussian
    mean = robust_mean(aggregation.robust, [one.mean for one in local], inputs)
    return replace(gaussian, mean=mean.to(gaussian.mean))


def partial_step(aggregation: Aggregation, origin: Block, fused: Block, share: float) -> Block:
    """The block after a partial step towards the fused one (CAM, equation 6).

    Args:
        aggregation: how clusters are aggregated.
        origin: the block before the round.
        fused: that after the whole step.
        share: of the step, in [0, 1].
    """
    mean = origin.gaussian.mean + share * (fused.gaussian.mean - origin.gaussian.mean)
    buffers = origin.buffers + share * (fused.buffers - origin.buffers)
    gaussian = DiagonalGaussian(mean, fused.gaussian.precision)
    moved = aggregation.updated(fused.key, origin, gaussian, buffers)
    return replace(moved, moments=fused.moments)
