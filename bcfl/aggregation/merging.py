"""MERGE of hypotheses by moment matching (BCFL, equations 17, 19 and 20).

Cluster by cluster, the mixture of the hypotheses' Gaussians is replaced by the Gaussian of the same
mean and variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.aggregation.aggregation import Aggregation
from bcfl.aggregation.buffers import pool_buffers
from bcfl.architecture.model import Model
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.runtime.seeds import lineage_key
from posteriors import merge


def merge_hypotheses(
    aggregation: Aggregation,
    model: Model,
    hypotheses: Sequence[Hypothesis],
    cluster_size: ClusterSize = FREE,
) -> Hypothesis:
    """Merge several hypotheses into one; a single hypothesis is returned as the same object.

    Args:
        aggregation: its memory determines the prior that merged posteriors leave.
        model: the architecture.
        hypotheses: hypotheses whose clusters correspond.
        cluster_size: bounds on the number of clients per cluster. Expected sizes are always within
            them; if the most probable clusters are not, the labels of the heaviest are taken.

    Returns:
        The merged hypothesis, with log weight 0.
    """
    if len(hypotheses) == 1:
        return hypotheses[0]
    weights = np.exp(assignment.normalise(np.array([h.log_weight for h in hypotheses])))
    clusters = tuple(
        _merge_clusters(aggregation, model, column, weights)
        for column in zip(*(h.clusters for h in hypotheses), strict=True)
    )
    by_weight = sorted(hypotheses, key=lambda h: -h.log_weight)
    heaviest = by_weight[0]
    association = Association.mixture([h.association for h in hypotheses], weights)
    if not cluster_size.allows(association):
        association = replace(association, labels=heaviest.association.labels.copy())
    from_parent: dict[int, float] = {}
    for hypothesis, weight in zip(hypotheses, weights, strict=True):
        for parent, share in zip(hypothesis.parents, hypothesis.parent_shares, strict=True):
            from_parent[parent] = from_parent.get(parent, 0.0) + float(weight) * share
    parents = tuple(sorted(from_parent))
    main = max(parents, key=lambda parent: from_parent[parent], default=None)
    following = next((h for h in by_weight if main in h.parents), heaviest)
    places = dict.fromkeys(place for h in hypotheses for place in h.cavities)
    cavities = {
        place: _merge_clusters(
            aggregation,
            model,
            [h.cavities.get(place, h.clusters[place[1]]) for h in hypotheses],
            weights,
        )
        for place in places
    }
    return replace(
        heaviest,
        clusters=clusters,
        cavities=cavities,
        belief=_merged_belief(hypotheses, weights),
        association=association,
        log_weight=0.0,
        parents=parents,
        shares=tuple(from_parent[parent] for parent in parents),
        continues=following.continues,
    )


def _merged_belief(
    hypotheses: Sequence[Hypothesis], weights: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> NDArray[np.float64] | None:
    if all(hypothesis.belief is None for hypothesis in hypotheses):
        return None
    rows = (w * h.membership for w, h in zip(weights, hypotheses, strict=True))
    belief: NDArray[np.float64] = sum(rows, start=np.zeros_like(hypotheses[0].membership))
    return belief


def _merge_clusters(
    aggregation: Aggregation,
    model: Model,
    clusters: Sequence[Posterior],
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Posterior:
    if all(posterior.key == clusters[0].key for posterior in clusters):
        return clusters[0]
    columns = zip(*(posterior.blocks for posterior in clusters), strict=True)
    return Posterior(tuple(_merge_blocks(aggregation, model, c, weights) for c in columns))


def _merge_blocks(
    aggregation: Aggregation,
    model: Model,
    blocks: Sequence[Block],
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Block:
    first = blocks[0]
    if all(block.key == first.key for block in blocks):
        return first
    key = lineage_key("merge", *((b.key, float(w)) for b, w in zip(blocks, weights, strict=True)))
    with np.errstate(divide="ignore"):  # a weight that underflowed contributes nothing
        gaussian = merge([block.gaussian for block in blocks], np.log(weights))
    pooled = pool_buffers(model, first.name, [b.buffers for b in blocks], weights.tolist())
    return aggregation.updated(key, first, gaussian, pooled)
