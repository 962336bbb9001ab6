"""Annealed Gibbs sampling of associations, in place of the best association of each round.

Given the cluster models, memberships are independent and each client's is drawn from its exact
conditional at a temperature; scored by cavities, this is the collapsed Gibbs sampler of a mixture
model (Neal, 2000, algorithm 3) with all clients drawn at once. The temperature falls to 0, where
the best association is taken (simulated annealing: Geman and Geman, 1984), so that early rounds
leave the basin of a bad start and late rounds converge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain

import numpy as np

import assignment
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.policy import Candidate, Costs, Policy, Ranking, candidate
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Steps
from bcfl.runtime.seeds import generator


@dataclass(frozen=True)
class AnnealedAssociation(PolicyWrapper):
    """Draw the association of each hypothesis while the temperature is above 0.

    With bounds on cluster sizes, the best association of costs perturbed by Gumbel noise is taken,
    which is an exact draw for free sizes only.

    Attributes:
        policy: the wrapped policy, whose candidates have costs.
        temperature: of the first round; costs in nats are divided by it.
        until: round, or share of the run below 1, in which it reaches 0, falling linearly.
    """

    policy: Policy
    temperature: float = 3.0
    until: float = 0.8

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}")
        check_round("until", self.until)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Rank by the policy, then draw. See `Policy.associate`."""
        ranking = yield from self.policy.associate(hypothesis, context)
        rounds = round_number(self.until, context)
        temperature = self.temperature * max(0.0, 1 - context.round / max(rounds, 1))
        candidates = iter(ranking)
        best = next(candidates, None)
        if best is None or best.costs is None or temperature == 0:
            return replace(ranking, candidates=_before(best, candidates))
        drawn = self._drawn(hypothesis, best, best.costs, temperature, context)
        drawn = replace(drawn, log_weight=_log_weight(drawn, ranking.reference))
        facts = {**ranking.facts, "annealing_temperature": temperature}
        return replace(ranking, candidates=(drawn,), facts=facts)

    def _drawn(
        self,
        hypothesis: Hypothesis,
        best: Candidate,
        costs: Costs,
        temperature: float,
        context: RoundContext,
    ) -> Candidate:
        keys = [posterior.key for posterior in hypothesis.clusters]
        random = generator(context.seed, context.round, "annealed association", *keys)
        noise = temperature * random.gumbel(size=costs.values.shape)
        lower, upper = costs.cluster_size.left_for(costs.clients, hypothesis.association)
        labels = assignment.best_assignment(costs.values - noise, lower, upper).labels
        chosen = candidate(
            hypothesis,
            dict(zip(costs.clients, map(int, labels), strict=True)),
            self.objective,
            num_samples=context.num_samples,
        )
        return replace(chosen, costs=costs, needs_cavities=best.needs_cavities, folds=best.folds)


def _log_weight(drawn: Candidate, reference: Fraction) -> float:
    """Log weight of a drawn association by its costs, above a reference, nats."""
    assert drawn.costs is not None
    labels = [drawn.association.label(client) for client in drawn.costs.clients]
    chosen = drawn.costs.values[np.arange(len(labels)), labels]
    return float(-assignment.exact_sum(chosen) - drawn.costs.total_offset - reference)


def _before(first: Candidate | None, rest: Iterator[Candidate]) -> Iterator[Candidate]:
    return rest if first is None else chain((first,), rest)
