"""Warm-up of clustered additive modelling: one of its two networks is trained first, alone.

Ma et al. (2023), section 3.3 and algorithm 1: rounds of FedAvg on the shared network for IFCA,
local training of the clients' own networks for FeSEM. The other network outputs zero until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.policy import Candidate, Continue, Given, Policy, Ranking, candidate
from bcfl.policies.updates.centroids import distances_between
from bcfl.policies.updates.kmeans import KMeansAssociation
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper, bounds_of
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps
from bcfl.runtime.seeds import lineage_key
from posteriors import DiagonalGaussian

INITIAL = "model before the warm-up"


@dataclass(frozen=True, kw_only=True)
class SharedFirst(PolicyWrapper):
    """All clients train the shared network alone, then a policy takes over.

    All clients are served by the first cluster, whose own network is zero in the meantime. Where
    cluster sizes are bounded, that is no association that could stay: a client that rests in the
    first round of the policy is in no cluster until it takes part.

    Attributes:
        policy: associates after the warm-up.
        alone: local objective of the warm-up; its phases name the shared block alone.
        rounds: rounds of the warm-up, or their share of the run below 1.
        silent: name of the block of the own networks.
    """

    policy: Policy
    alone: Objective
    rounds: float = 0.3
    silent: str = "own"

    def __post_init__(self) -> None:
        check_round("rounds", self.rounds)
        _check_alone(self.alone, self.silent)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Train the shared network, or associate by the policy.

        See `bcfl.policies.Policy.associate`.
        """
        if context.round >= round_number(self.rounds, context):
            if INITIAL in hypothesis.carried_models and not bounds_of(self.policy).free:
                clients, count = hypothesis.association.clients, len(hypothesis.clusters)
                hypothesis = replace(hypothesis, association=Association.unseen(clients, count))
            return (yield from _restored(self.policy, self.silent, hypothesis, context))
        first, *others = hypothesis.clusters
        quiet = replace(hypothesis, clusters=(silenced(first, self.silent), *others))
        labels = dict.fromkeys(context.participants, 0)
        plain = replace(self.alone, regularizers=())
        chosen = candidate(quiet, labels, plain)
        return Ranking.only(_warming(chosen, quiet, hypothesis))


@dataclass(frozen=True, kw_only=True)
class LocalFirst(PolicyWrapper):
    """Each client trains a network of its own alone, which K-means then clusters.

    In the meantime each client is a cluster, and the shared network is zero. K-means ends the last
    round of the warm-up; clients that are absent from it join the nearest cluster.

    Attributes:
        policy: associates after the warm-up.
        first: K-means on the clients' networks; its objective trains their block alone.
        rounds: rounds of the warm-up, or their share of the run below 1.
        silent: name of the shared block.
    """

    policy: Policy
    first: KMeansAssociation
    rounds: float = 0.3
    silent: str = "shared"

    def __post_init__(self) -> None:
        check_round("rounds", self.rounds)
        _check_alone(self.first.objective, self.silent)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Train and at last cluster the own networks, or associate.

        See `bcfl.policies.Policy.associate`.
        """
        rounds = round_number(self.rounds, context)
        if context.round >= rounds:
            return (yield from _restored(self.policy, self.silent, hypothesis, context))
        clusters = tuple(silenced(cluster, self.silent) for cluster in hypothesis.clusters)
        quiet = replace(hypothesis, clusters=clusters)
        if context.round + 1 < rounds:
            (chosen,) = yield from LocalTraining(self.first.objective).associate(quiet, context)
        else:
            chosen, quiet = yield from self._clustered(quiet, context)
        return Ranking.only(_warming(chosen, quiet, hypothesis))

    def _clustered(
        self, alone: Hypothesis, context: RoundContext
    ) -> Steps[tuple[Candidate, Hypothesis]]:
        """Train the clients' networks once more, and cluster them: all clusters are new."""
        initial = silenced(alone.carried_models.get(INITIAL, alone.clusters[0]), self.silent)
        count, clients = self.first.num_clusters, alone.association.clients
        unseen = Association.unseen(clients, count)
        together = replace(alone, clusters=(initial,) * count, association=unseen)
        keys = {c: alone.clusters[k].key for c, k in alone.association.by_client.items()}
        starts = {client: keys.get(client, initial.key) for client in context.participants}
        models = (*alone.clusters, initial)
        (chosen,) = yield from self.first.trained_from(together, starts, models, context)
        chosen = replace(chosen, origins=(Given(initial),) * count)
        return self._with_absent(chosen, alone, context), together

    def _with_absent(
        self, chosen: Candidate, alone: Hypothesis, context: RoundContext
    ) -> Candidate:
        """The candidate with absent clients in the cluster nearest to their networks.

        In none where cluster sizes are bounded.
        """
        labels, mask = chosen.association.by_client, context.model.chosen(self.first.part)
        absent = {c: k for c, k in alone.association.by_client.items() if c not in labels}
        if not absent or not labels or not self.first.cluster_size.free:
            return chosen
        trained = [(labels[t.client], reply) for t, reply in chosen.answers.items()]
        used = sorted(set(labels.values()))
        centres = [
            np.average(
                [reply.mean.cpu()[mask].double().numpy() for k, reply in trained if k == label],
                axis=0,
                weights=[reply.num_samples for k, reply in trained if k == label],
            )
            for label in used
        ]
        means = [alone.clusters[k].mean(context.model).cpu() for k in absent.values()]
        points = np.stack([mean[mask].double().numpy() for mean in means])
        nearest = distances_between(points, np.stack(centres)).argmin(axis=1)
        joined = dict(zip(absent, (used[index] for index in nearest), strict=True))
        return replace(chosen, association=chosen.association.updated(joined))


def _check_alone(objective: Objective, silent: str) -> None:
    if not objective.phases or objective.trains(silent):
        raise ValueError(f"objective must train other blocks than {silent!r} alone")


def _warming(chosen: Candidate, quiet: Hypothesis, parent: Hypothesis) -> Candidate:
    """The candidate of a warm-up, which continues from silenced models.

    Args:
        chosen: ranked for the hypothesis with silenced models.
        quiet: that hypothesis.
        parent: the hypothesis that the candidate follows.
    """
    initial = parent.carried_models.get(INITIAL, parent.clusters[0])
    given = _given([chosen], quiet.clusters)
    return replace(next(given), carried_models={**parent.carried_models, INITIAL: initial})


def _restored(
    policy: Policy, silent: str, hypothesis: Hypothesis, context: RoundContext
) -> Steps[Ranking]:
    """Associate by a policy, with the initial networks in the place of silenced ones."""
    initial = hypothesis.carried_models.get(INITIAL)
    if initial is None:
        return (yield from policy.associate(hypothesis, context))
    clusters = tuple(
        cluster.with_blocks({silent: initial}) if _is_silent(cluster, silent) else cluster
        for cluster in hypothesis.clusters
    )
    carried = {name: m for name, m in hypothesis.carried_models.items() if name != INITIAL}
    whole = replace(hypothesis, clusters=clusters, carried_models=carried)
    ranking = yield from policy.associate(whole, context)
    return replace(ranking, candidates=_given(iter(ranking), clusters))


def _given(
    candidates: Iterator[Candidate] | Sequence[Candidate], clusters: Sequence[Posterior]
) -> Iterator[Candidate]:
    """The candidates with clusters that continue from these ones, not the parent's."""
    for chosen in candidates:
        origins = tuple(
            Given(clusters[origin.index], None if origin.is_copy else origin.index)
            if isinstance(origin, Continue)
            else origin
            for origin in chosen.origins
        )
        yield replace(chosen, origins=origins, models=(*chosen.models, *clusters))


def _is_silent(posterior: Posterior, name: str) -> bool:
    return any(block.is_zero for block in posterior.blocks if block.name == name)


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
    if block.is_zero:
        return block
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
