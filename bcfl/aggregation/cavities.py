"""Cavities: the model of a cluster without what one client contributed to it.

A client that is scored under a model that its own samples have trained always finds it good. The
cavity of expectation propagation (Minka, 2001) leaves its own factor out, without setting samples
aside. Exact for fused Gaussians, and for robust means, which are taken again of the others. Only
the last contribution is left out: what earlier ones taught the cluster remains in the models that
the others started from, so that scores by cavities are not out of sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bcfl.aggregation.aggregation import (
    Aggregation,
    partial_step,
    pooled_buffers,
    robustly,
)
from bcfl.aggregation.contributions import (
    Contribution,
    contributions_of,
    local_posteriors,
    share_of,
)
from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Cavities, Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.policy import Candidate, Continue
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import lineage_key
from posteriors import carry, fuse_without


def cavities_of(
    aggregation: Aggregation,
    model: Model,
    parent: Hypothesis,
    candidate: Candidate,
    clusters: Sequence[Posterior],
    replies: Mapping[Train, Trained],
) -> Cavities:
    """The model of each cluster without each of its contributors.

    Blocks of global scope stay as they are: they are the same in all clusters, so that they favour
    none. A cluster to which no client contributed keeps the cavities that it had.

    Args:
        aggregation: how local models become cluster models.
        model: the architecture.
        parent: hypothesis that the candidate follows.
        candidate: association with its trainings.
        clusters: models of the clusters after the round.
        replies: local models by answered training.

    Returns:
        By client and index of the cluster. The cavity of a single contributor is the model that the
        cluster continues from.
    """
    sent = {posterior.key: posterior for posterior in parent.clusters}
    cavities: dict[tuple[str, int], Posterior] = {}
    for index, origin in enumerate(candidate.origins):
        before = origin.posterior(parent)
        blocks: dict[str, dict[int, Block]] = {}
        for position, spec in enumerate(model.blocks):
            inputs = contributions_of(spec, candidate, replies, index, sent)
            if spec.scope == "global" or not inputs:
                continue
            made = _without_each(
                aggregation, model, before.blocks[position], inputs, candidate, replies
            )
            for client, block in made.items():
                key = lineage_key(clusters[index].key, "without", client)
                same = block is before.blocks[position]
                named = block if same else replace(block, key=key)
                blocks.setdefault(client, {})[position] = named
        for client, changed in blocks.items():
            parts = enumerate(clusters[index].blocks)
            cavities[client, index] = Posterior(tuple(changed.get(i, b) for i, b in parts))
        if not blocks and isinstance(origin, Continue):
            kept = ((c, k) for c, k in parent.cavities if k == origin.index)
            cavities |= {(client, index): parent.cavities[client, k] for client, k in kept}
    return cavities


def _without_each(
    aggregation: Aggregation,
    model: Model,
    origin: Block,
    inputs: Sequence[Contribution],
    candidate: Candidate,
    replies: Mapping[Train, Trained],
) -> dict[str, Block]:
    """The block without each client that contributes to it, by client."""
    base = carry(aggregation.memory, origin.gaussian, origin.base, aggregation.decay)
    local, buffers = local_posteriors(model, origin, inputs)
    places: dict[str, list[int]] = {}
    for place, contribution in enumerate(inputs):
        places.setdefault(contribution.training.client, []).append(place)
    fused = fuse_without(aggregation.fusion, base, local, list(places.values()))
    blocks = {}
    for (client, left_out), without in zip(places.items(), fused, strict=True):
        rest = [place for place in range(len(inputs)) if place not in left_out]
        if not rest:
            blocks[client] = origin
            continue
        others = [inputs[place] for place in rest]
        pooled = pooled_buffers(aggregation, model, origin, [buffers[i] for i in rest], others)
        gaussian = robustly(aggregation, without, [local[i] for i in rest], others)
        mean, _ = aggregation.server.step(origin.gaussian.mean, gaussian.mean, origin.moments)
        moved = replace(gaussian, mean=mean)
        block = aggregation.updated(origin.key, origin, moved, pooled)
        share = share_of(others, candidate, replies)
        blocks[client] = block if share == 1 else partial_step(aggregation, origin, block, share)
    return blocks
