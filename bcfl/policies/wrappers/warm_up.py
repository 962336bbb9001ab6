"""Warm-up by another policy (BCFL, section 5: two rounds of K-means on local models)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext, round_number
from bcfl.policies.policy import Candidate, Policy, Ranking, Validates
from bcfl.policies.updates.kmeans import KMeansAssociation
from bcfl.policies.wrappers.frozen import Frozen
from bcfl.policies.wrappers.policy_wrapper import bounds_of, chain_of
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps


@dataclass(frozen=True)
class WarmUp:
    """Follow `first` for `rounds` rounds, then `then`.

    Attributes:
        first: policy of the first rounds.
        then: policy of the rounds after.
        rounds: number of rounds of `first`, or a share of the run in (0, 1).
        starts: how many of the method's starts follow `first`; the others begin with `then`. None
            is all.
    """

    first: Policy
    then: Policy
    rounds: float = 2
    starts: int | None = None

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise ValueError(f"rounds must be at least 0, got {self.rounds}")
        if self.rounds > 1 and not float(self.rounds).is_integer():
            raise ValueError(f"rounds must be whole or a share below 1, got {self.rounds}")
        if self.starts is not None and self.starts < 0:
            raise ValueError(f"starts must be at least 0 or None, got {self.starts}")
        if self.first.num_clusters != self.then.num_clusters:
            raise ValueError(
                f"both policies must have the same number of clusters, got "
                f"{self.first.num_clusters} and {self.then.num_clusters}"
            )

    @classmethod
    def by_kmeans(
        cls, then: Policy, rounds: float = 2, starts: int | None = None, held: int = 0
    ) -> WarmUp:
        """Warm-up by K-means on local models of equal weight, within the same bounds on sizes.

        Args:
            then: policy of the rounds after.
            rounds: see the attributes.
            starts: see the attributes.
            held: further rounds, in which clients keep their clusters. Rounds with clients never
                seen before are associated by K-means still.

        Raises:
            ValueError: `held` is below 0, or above it and `rounds` is not whole.
        """
        if held < 0:
            raise ValueError(f"held must be at least 0, got {held}")
        if held and (rounds < 1 or not float(rounds).is_integer()):
            raise ValueError(f"rounds must be whole and above 0 to be held after, got {rounds}")
        kmeans = KMeansAssociation(
            num_clusters=then.num_clusters,
            objective=then.objective,
            weighting="equal",
            cluster_size=bounds_of(then),
        )
        first = Frozen(kmeans, int(rounds)) if held else kmeans
        return cls(first, then, rounds + held, starts)

    @property
    def num_clusters(self) -> int:
        """Number of clusters of both."""
        return self.then.num_clusters

    @property
    def objective(self) -> Objective:
        """How the clients train after the warm-up."""
        return self.then.objective

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check the requirements of both policies. See `bcfl.policies.policy.Validates.check`.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_participants: number of participants of a round.

        Raises:
            ValueError: one of them is not met.
        """
        for policy in (self.first, self.then):
            if isinstance(policy, Validates):
                policy.check(num_clusters, num_clients, num_participants)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate by the policy of this round. See `bcfl.policies.Policy.associate`."""
        start = hypothesis.lineage[0] if hypothesis.lineage else 0
        warming = context.round < round_number(self.rounds, context)
        warming &= self.starts is None or start < self.starts
        if not warming:
            return (yield from self.then.associate(hypothesis, context))
        ranking = yield from self.first.associate(hypothesis, context)
        return replace(ranking, candidates=map(self._with_cavities, ranking))

    def _with_cavities(self, chosen: Candidate) -> Candidate:
        """The candidate, asking for the cavities by which the policy after it scores."""
        *_, last = chain_of(self.then)
        needed: bool = getattr(last, "needs_cavities", False)
        return replace(chosen, needs_cavities=needed, folds=getattr(last, "cavity_folds", 0))
