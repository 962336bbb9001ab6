"""The warm-up of clustered additive modelling: FedAvg on the network that all clusters share."""

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
    """Everybody trains the shared block alone, as if the clusters' networks were silent.

    The CAM paper (section 4) warms up with FedAvg. Meanwhile all clients are served by the first
    cluster, whose own network is as it was drawn.

    Attributes:
        num_clusters: clusters of the policy that follows.
        objective: local objective; its phases name the shared block alone.
        silent: name of the block that counts as silent.
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
        made = candidate(hypothesis, labels, plain, starts=starts)
        return Ranking.only(replace(made, models=(start,)))


def silenced(posterior: Posterior, name: str) -> Posterior:
    """The model whose block of a name is all zeros, so that a network made of it outputs zero."""
    return Posterior(
        tuple(_silent(block) if block.name == name else block for block in posterior.blocks)
    )


def _silent(block: Block) -> Block:
    point = DiagonalGaussian(torch.zeros_like(block.gaussian.mean), block.gaussian.precision)
    key = lineage_key("silent", block.key)
    return Block(key, block.name, point, block.base, point, block.buffers, is_zero=True)
