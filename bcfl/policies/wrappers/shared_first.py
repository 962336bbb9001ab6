"""Warm-up of clustered additive modelling (CAM, section 4): FedAvg on the shared network."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking, candidate
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps
from bcfl.runtime.seeds import lineage_key
from posteriors import DiagonalGaussian


@dataclass(frozen=True)
class SharedFirst:
    """All clients train the shared block alone, with the cluster networks set to zero.

    All clients are served by the first cluster, whose own network keeps its initial parameters.

    Attributes:
        num_clusters: number of clusters of the policy that follows.
        objective: local objective; its phases name the shared block alone.
        silent: name of the block that is set to zero.
    """

    num_clusters: int
    objective: Objective
    silent: str = "own"

    def __post_init__(self) -> None:
        if not self.objective.phases or self.objective.trains(self.silent):
            raise ValueError(f"objective must train other blocks than {self.silent!r} alone")

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `Policy.associate`."""
        yield from ()
        start = silenced(hypothesis.clusters[0], self.silent)
        labels = dict.fromkeys(context.participants, 0)
        plain = replace(self.objective, regularizers=())
        starts = dict.fromkeys(context.participants, start.key)
        chosen = candidate(hypothesis, labels, plain, starts=starts)
        return Ranking.only(replace(chosen, models=(start,)))


def silenced(posterior: Posterior, name: str) -> Posterior:
    """The model with one block set to zero, so that its network outputs zero.

    Args:
        posterior: the model.
        name: name of the block.
    """
    return Posterior(
        tuple(_silent(block) if block.name == name else block for block in posterior.blocks)
    )


def _silent(block: Block) -> Block:
    point = DiagonalGaussian(torch.zeros_like(block.gaussian.mean), block.gaussian.precision)
    key = lineage_key("silent", block.key)
    return Block(
        key=key,
        name=block.name,
        gaussian=point,
        base=block.base,
        prior=point,
        buffers=block.buffers,
        is_zero=True,
    )
