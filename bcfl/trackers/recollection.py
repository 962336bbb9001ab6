"""What clients said of clusters when they last took part, for rounds in which they do not.

Hypotheses compete by the weights of the clients that are present. Where few are, a hypothesis that
gave up a group whose clients happen to be absent would not be charged for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bcfl.aggregation.aggregation import Aggregation
from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Costs, Policy, Ranking
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Steps

KEY = "last_costs"
"""Where the state of a hypothesis holds them."""


@dataclass(frozen=True, eq=False)
class LastCosts:
    """Each client's last row of costs under a hypothesis.

    All that compete in a round are scored by the same clients, so what is remembered of a client
    is of the same round in all of them and can be compared.

    Attributes:
        rows: (clusters,) negative log weights by which hypotheses compete, nats, by client.
    """

    rows: Mapping[str, list[float]]

    @classmethod
    def of(cls, state: Mapping[str, Any], step: int) -> LastCosts:
        """What a state holds; nothing if it is of data of another time step."""
        held = state.get(KEY, {})
        return cls(held["rows"] if held.get("step") == step else {})

    def without(self, clients: Collection[str]) -> LastCosts:
        """The rows of all other clients."""
        return LastCosts({c: row for c, row in self.rows.items() if c not in clients})

    def log_weight(self, association: Association) -> float:
        """Summed log weight of the clients in the clusters that serve them, nats."""
        served = {client: association.label(client) for client in self.rows}
        costs = [self.rows[client][k] for client, k in served.items() if k != UNSEEN]
        return -float(sum(costs))

    def updated(self, costs: Costs) -> LastCosts:
        """With the rows of the clients that have taken part since."""
        rows = dict(zip(costs.clients, costs.competing.tolist(), strict=True))
        return LastCosts({**self.rows, **rows})

    def completed(self, costs: Costs) -> Costs:
        """The costs of a round with the rows of the clients that were absent."""
        absent = self.without(set(costs.clients)).rows
        if not absent:
            return costs
        rows = np.array(list(absent.values()))
        judged = None if costs.judged is None else np.concatenate([costs.judged, rows])
        values = np.concatenate([costs.values, rows])
        return replace(costs, clients=(*costs.clients, *absent), values=values, judged=judged)

    def following(self, sources: list[int]) -> LastCosts:
        """For clusters that continue from others: what was said of those.

        Args:
            sources: for each new cluster, the old one.
        """
        return LastCosts({c: [row[k] for k in sources] for c, row in self.rows.items()})

    def state(self, step: int) -> Mapping[str, Any]:
        """As the state of a hypothesis holds it."""
        return {KEY: {"step": step, "rows": dict(sorted(self.rows.items()))}}


@dataclass(frozen=True)
class WithAbsentClients(PolicyWrapper):
    """A policy whose rankings also count the clients that are absent, as they last spoke.

    An absent client stays with the cluster that serves it, and counts with what it last said of
    that cluster. This shifts all associations that follow one hypothesis alike, so it changes
    nothing but how hypotheses compete with one another. In a round in which nobody answers all are
    absent. Of a policy that never has costs nothing is remembered, so it is left as it is.

    Attributes:
        policy: ranks the associations.
        counts: whether absent clients count. Where weights are carried from round to round their
            last words are in them already; they are remembered for proposals alone then.
    """

    policy: Policy
    counts: bool = True

    @classmethod
    def within(cls, policy: Policy, aggregation: Aggregation) -> WithAbsentClients:
        """For the memory of an aggregation."""
        return cls(policy, aggregation.carried_log_weight(1.0) == 0)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate by the policy, then add what absent clients last said."""
        ranking = yield from self.policy.associate(hypothesis, context)
        candidates = iter(ranking)
        best = next(candidates)
        before = LastCosts.of(hypothesis.state, context.step)
        absent = before if best.costs is None else before.without(set(best.costs.clients))
        shift = absent.log_weight(hypothesis.association) if self.counts else 0.0
        state = {} if best.costs is None else before.updated(best.costs).state(context.step)

        def shifted() -> Iterator[Candidate]:
            for one in _after(best, candidates):
                log_weight = one.log_weight + shift
                yield replace(one, log_weight=log_weight, state={**one.state, **state})

        return replace(ranking, candidates=shifted(), log_total=ranking.log_total + shift)


def recalled(candidate: Candidate, step: int) -> Candidate:
    """The candidate whose costs also tell what absent clients said last, for proposals."""
    if candidate.costs is None:
        return candidate
    held = LastCosts.of(candidate.state, step)
    return replace(candidate, costs=held.completed(candidate.costs))


def inherited(proposed: Candidate, parent: Hypothesis, step: int) -> Candidate:
    """The proposal whose state tells of each cluster what was said of the one it continues."""
    held = LastCosts.of(proposed.state, step)
    keys = [posterior.key for posterior in parent.clusters]
    sources = [origin.posterior(parent).key for origin in proposed.origins]
    known = held if set(sources) <= set(keys) else LastCosts({})
    moved = known.following([keys.index(k) for k in sources]) if known.rows else known
    return replace(proposed, state={**proposed.state, **moved.state(step)})


def _after(first: Candidate, others: Iterator[Candidate]) -> Iterator[Candidate]:
    yield first
    yield from others
