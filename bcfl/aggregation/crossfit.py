"""Cross-fitting: cluster models of which each was trained by all members but one fold of clients.

Unlike a cavity, which leaves out a client's last contribution, such a model has never seen the
clients that it scores, at the price of one more local training for each further fold; after a
warm-up without folds, it begins with clusters that have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bcfl.aggregation.aggregation import Aggregation, FusionReport
from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Cavities, Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.policy import Candidate, trainings
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import generator


@dataclass(frozen=True, eq=False)
class Fold:
    """The part of a round that trains the models without the clients of one fold.

    Attributes:
        clients: names of the clients that these models leave out.
        parent: the parent hypothesis with the fold's models as its clusters.
        candidate: the association with the trainings of all other clients, from these models.
    """

    clients: Sequence[str]
    parent: Hypothesis
    candidate: Candidate


def folds_of(
    parent: Hypothesis, candidate: Candidate, seed: int, num_samples: Mapping[str, int]
) -> tuple[Fold, ...]:
    """The folds of a candidate; none unless it asks for them.

    Args:
        parent: hypothesis that the candidate follows; its cavities are the models of the folds, and
            where it has none, folds begin with the models of the clusters.
        candidate: association with its trainings.
        seed: of the run; clients are dealt into folds of equal size once, in random order.
        num_samples: training samples of the clients, for objectives with regularisers.
    """
    if not candidate.folds:
        return ()
    clients = parent.association.clients
    order = generator(seed, "folds of clients").permutation(len(clients))
    left_out = [
        [
            client
            for client, place in zip(clients, order, strict=True)
            if place % candidate.folds == i
        ]
        for i in range(candidate.folds)
    ]
    return tuple(_fold(parent, candidate, names, num_samples) for names in left_out if names)


def cavities_of_folds(
    folds: Sequence[Fold],
    aggregation: Aggregation,
    model: Model,
    replies: Mapping[Train, Trained],
    cache: dict[str, tuple[Block, FusionReport]],
    round: int,
) -> Cavities:
    """For each client, the models of all clusters that its fold had no part in.

    Args:
        folds: of one candidate.
        aggregation: how local models become cluster models.
        model: the architecture.
        replies: local models by answered training.
        cache: blocks of this round, by key; extended, so that equal blocks are one object.
        round: number of the round.
    """
    cavities: dict[tuple[str, int], Posterior] = {}
    for fold in folds:
        clusters, _ = aggregation.combine(model, fold.parent, fold.candidate, replies, cache, round)
        cavities |= {(c, i): cluster for c in fold.clients for i, cluster in enumerate(clusters)}
    return cavities


def _fold(
    parent: Hypothesis,
    candidate: Candidate,
    left_out: Sequence[str],
    num_samples: Mapping[str, int],
) -> Fold:
    """A fold; its trainings start from, and refer to, its own models in place of the clusters."""
    known = parent.cavities
    clusters = tuple(known.get((left_out[0], i), p) for i, p in enumerate(parent.clusters))
    inside = replace(parent, clusters=clusters, cavities={})
    own = {old.key: new.key for old, new in zip(parent.clusters, clusters, strict=True)}
    without = set(left_out)
    kept = [i for i, t in enumerate(candidate.trainings) if t.client not in without]
    starts = [(t.objective, own.get(t.start, t.start)) for t in candidate.trainings]
    work = {
        (objective, start): trainings(inside, {"": start}, objective, num_samples)
        for objective, start in dict.fromkeys(starts[i] for i in kept)
    }
    inner = [
        replace(
            candidate.trainings[i],
            start=starts[i][1],
            references=work[starts[i]].requests[0].references,
        )
        for i in kept
    ]
    return Fold(
        clients=left_out,
        parent=inside,
        candidate=replace(
            candidate,
            trainings=tuple(inner),
            contribution_weights=candidate.contribution_weights[kept],
            models=(*candidate.models, *(m for one in work.values() for m in one.models)),
        ),
    )
