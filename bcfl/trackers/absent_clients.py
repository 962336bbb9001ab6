"""Hypothesis weights under partial participation: absent clients count with their last costs.

Hypotheses compete by the weights of the participants. With few participants, a hypothesis that has
lost a group whose clients happen to be absent would otherwise not be penalised for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

import assignment
from bcfl.aggregation.aggregation import Aggregation
from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Costs, Policy, Ranking
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Steps

KEY = "last_costs"
"""Key of the last costs in the state of a hypothesis."""


@dataclass(frozen=True, eq=False)
class LastCosts:
    """Each client's most recent row of costs under a hypothesis.

    All hypotheses of a round are scored by the same clients, so a client's last row dates from the
    same round in all of them, and rows of different hypotheses are comparable.

    Attributes:
        rows: for each client, (clusters,) negative log weights by which hypotheses compete, nats,
            less its offset.
        offsets: for each client, the offset as two numbers whose sum it is, nats; none is 0.
    """

    rows: Mapping[str, list[float]]
    offsets: Mapping[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any], step: int) -> LastCosts:
        """Read from the state of a hypothesis; empty if stored in another time step.

        Args:
            state: state of the hypothesis.
            step: time step of the data, from 0.
        """
        stored = state.get(KEY, {})
        return cls(stored["rows"], stored["offsets"]) if stored.get("step") == step else cls({})

    def without(self, clients: Collection[str]) -> LastCosts:
        """The rows of all other clients."""
        rows = {c: row for c, row in self.rows.items() if c not in clients}
        return replace(self, rows=rows)

    def log_weight(self, association: Association) -> Fraction:
        """Summed log weight of the clients in the clusters that serve them, nats, exact."""
        labels = {client: association.label(client) for client in self.rows}
        served = {client: k for client, k in labels.items() if k != UNSEEN}
        costs = [self.rows[client][k] for client, k in served.items()]
        offsets = [part for client in served for part in self.offsets.get(client, ())]
        return -assignment.exact_sum(costs + offsets)

    def updated(self, costs: Costs) -> LastCosts:
        """With the rows of this round's participants in place of their earlier ones."""
        rows = dict(zip(costs.clients, costs.competing.tolist(), strict=True))
        offsets = dict(zip(costs.clients, costs.competing_offsets.tolist(), strict=True))
        return LastCosts({**self.rows, **rows}, {**self.offsets, **offsets})

    def completed(self, costs: Costs) -> Costs:
        """The costs of a round, extended by the last rows of the absent clients.

        They compete, and tell no memberships.
        """
        absent = self.without(set(costs.clients)).rows
        if not absent:
            return costs
        rows = np.array(list(absent.values()))
        judged = None if costs.judged is None else np.concatenate([costs.judged, rows])
        values = np.concatenate([costs.values, rows])
        added = np.array([self.offsets.get(client, [0.0, 0.0]) for client in absent])
        known = np.zeros((len(costs.clients), 2)) if costs.offsets is None else costs.offsets
        return replace(
            costs,
            clients=(*costs.clients, *absent),
            values=values,
            judged=judged,
            offsets=np.concatenate([known, added]),
            judged_offsets=np.concatenate([costs.competing_offsets, added]),
            belief_temperature=None,
            log_prior=None,
        )

    def reindexed(self, sources: list[int]) -> LastCosts:
        """For clusters that continue from others: the columns of those.

        Args:
            sources: for each new cluster, the one that it continues from.
        """
        rows = {c: [row[k] for k in sources] for c, row in self.rows.items()}
        return replace(self, rows=rows)

    def state(self, step: int) -> Mapping[str, Any]:
        """As stored in the state of a hypothesis.

        Args:
            step: time step of the data, from 0.
        """
        rows, offsets = dict(sorted(self.rows.items())), dict(sorted(self.offsets.items()))
        return {KEY: {"step": step, "rows": rows, "offsets": offsets}}


@dataclass(frozen=True)
class WithAbsentClients(PolicyWrapper):
    """A policy whose rankings include absent clients, at their most recent costs.

    An absent client stays with the cluster that serves it and contributes its last cost there. All
    associations that follow one hypothesis shift by the same amount, so only the competition
    between hypotheses changes. In a round without any answer all clients are absent. A policy
    without costs is left unchanged.

    Attributes:
        policy: ranks the associations.
        counts: whether absent clients enter the weights. Weights that are carried from round to
            round contain their costs already; these are then kept for proposals alone.
    """

    policy: Policy
    counts: bool = True

    @classmethod
    def within(cls, policy: Policy, aggregation: Aggregation) -> WithAbsentClients:
        """Wrap a policy; absent clients enter the weights where the memory carries no weights.

        Args:
            policy: ranks the associations.
            aggregation: its memory decides whether past weights are carried on.
        """
        return cls(policy, aggregation.carried_log_weight(1.0) == 0)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Rank by the policy, then add absent clients' last costs. See `Policy.associate`."""
        ranking = yield from self.policy.associate(hypothesis, context)
        candidates = iter(ranking)
        best = next(candidates)
        before = LastCosts.of(hypothesis.state, context.step)
        absent = before if best.costs is None else before.without(set(best.costs.clients))
        shift = absent.log_weight(hypothesis.association) if self.counts else Fraction(0)
        state = {} if best.costs is None else before.updated(best.costs).state(context.step)

        def stored() -> Iterator[Candidate]:
            for candidate in chain((best,), candidates):
                yield replace(candidate, state={**candidate.state, **state})

        return replace(ranking, candidates=stored(), reference=ranking.reference + shift)


def with_last_costs(candidate: Candidate, step: int) -> Candidate:
    """The candidate with its costs extended by those of absent clients, for proposals.

    Args:
        candidate: of this round.
        step: time step of the data, from 0.
    """
    if candidate.costs is None:
        return candidate
    last = LastCosts.of(candidate.state, step)
    return replace(candidate, costs=last.completed(candidate.costs))


def with_inherited_costs(proposed: Candidate, parent: Hypothesis, step: int) -> Candidate:
    """The proposal whose clusters take over the last costs of those that they continue from.

    Args:
        proposed: a proposal that splits, removes or merges clusters of `parent`.
        parent: hypothesis that the proposal was made from.
        step: time step of the data, from 0.
    """
    last = LastCosts.of(proposed.state, step)
    keys = [posterior.key for posterior in parent.clusters]
    sources = [origin.posterior(parent).key for origin in proposed.origins]
    usable = last if set(sources) <= set(keys) else LastCosts({})
    costs = usable.reindexed([keys.index(k) for k in sources]) if usable.rows else usable
    return replace(proposed, state={**proposed.state, **costs.state(step)})
