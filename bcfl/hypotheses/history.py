"""Snapshots of each round for analysis: associations and weights, without models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

import assignment
from bcfl.hypotheses.association import Association, given_seen
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.matching import best_matching
from bcfl.runtime import is_whole
from bcfl.runtime.suggestions import counted


@dataclass(frozen=True, eq=False)
class Proposed:
    """A proposal of one round, without its models.

    Attributes:
        association: serving cluster of each client.
        parent: index, in the previous snapshot, of the hypothesis that it is an alternative to.
        kind: kind of the proposal, such as `split`.
    """

    association: Association
    parent: int
    kind: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """The hypotheses after one round, without their models.

    Attributes:
        round: number of rounds done.
        log_weights: (hypotheses,) log probabilities, nats.
        associations: serving cluster of each client, per hypothesis.
        parents: indices of the parents, per hypothesis, in the previous snapshot: hypotheses, then
            proposals.
        log_captured_mass: see `bcfl.hypotheses.HypothesisSet`.
        proposals: alternatives made in this round, which compete in the next.
        shares: share of the weight from each parent, per hypothesis; empty for equal shares.
        beliefs: (clients, clusters) belief of each hypothesis, None where it has none in that round
            (see `bcfl.Hypothesis.belief`); empty if none has.
        continues: for each hypothesis and then each proposal, the clusters that its clusters
            continue, see `bcfl.Hypothesis.continues`; empty if all keep their indices.
    """

    round: int
    log_weights: NDArray[np.float64]
    associations: tuple[Association, ...]
    parents: tuple[tuple[int, ...], ...]
    log_captured_mass: float
    proposals: tuple[Proposed, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    beliefs: tuple[NDArray[np.float64] | None, ...] = ()
    continues: tuple[tuple[int, ...], ...] = ()

    def __repr__(self) -> str:
        return (
            f"Snapshot(round {self.round}, "
            f"{counted(len(self.associations), 'hypothesis', 'hypotheses')}, "
            f"{counted(len(self.proposals), 'proposal')})"
        )

    @classmethod
    def of(cls, hypotheses: HypothesisSet) -> Snapshot:
        """The snapshot of a set of hypotheses."""
        return cls(
            round=hypotheses.round,
            log_weights=hypotheses.log_weights,
            associations=tuple(h.association for h in hypotheses),
            parents=tuple(h.parents for h in hypotheses),
            log_captured_mass=hypotheses.log_captured_mass,
            proposals=tuple(
                Proposed(h.association, h.parents[0], h.kind) for h in hypotheses.proposals
            ),
            shares=tuple(h.parent_shares for h in hypotheses),
            beliefs=tuple(h.belief for h in hypotheses),
            continues=tuple(h.continues for h in hypotheses.competing)
            if any(h.continues for h in hypotheses.competing)
            else (),
        )

    @property
    def memberships(self) -> tuple[NDArray[np.float64], ...]:
        """(clients, clusters) belief of each hypothesis, or its association without a belief."""
        beliefs = self.beliefs or (None,) * len(self.associations)
        pairs = zip(self.associations, beliefs, strict=True)
        return tuple(a.serving if belief is None else belief for a, belief in pairs)

    @property
    def weights(self) -> NDArray[np.float64]:
        """(hypotheses,) probabilities."""
        return np.exp(self.log_weights)

    @property
    def effective_number(self) -> float:
        """1 / sum of squared weights, see `bcfl.HypothesisSet.effective_number`."""
        return float(assignment.effective_number(self.log_weights))

    @property
    def origins(self) -> list[list[tuple[int, float]]]:
        """Parents and shares of the weight for each hypothesis, then for each proposal."""
        equally = [(1.0 / max(len(parents), 1),) * len(parents) for parents in self.parents]
        rows = zip(self.parents, self.shares or equally, strict=True)
        origins = [list(zip(parents, shares, strict=True)) for parents, shares in rows]
        return origins + [[(proposal.parent, 1.0)] for proposal in self.proposals]

    def co_association(self) -> scipy.sparse.csr_array:
        """Factor F of the co-association probabilities, (clients, clusters of all associations).

        Off the diagonal, F Fᵀ is the probability that two clients share a cluster, over hypotheses
        and over the associations that a merged hypothesis is a mixture of.
        """
        return _factor(
            (np.exp(log_weight) * weight, component.serving)
            for log_weight, association in zip(self.log_weights, self.associations, strict=True)
            for weight, component in association.components
        )

    def believed_co_association(self) -> scipy.sparse.csr_array:
        """The same factor by what hypotheses believe, or their associations where they do not."""
        beliefs = self.beliefs or (None,) * len(self.associations)
        rows = zip(self.log_weights, self.associations, beliefs, strict=True)
        return _factor(
            (np.exp(log_weight) * weight, membership)
            for log_weight, association, belief in rows
            for weight, membership in (
                [(w, one.serving) for w, one in association.components]
                if belief is None
                else [(1.0, belief)]
            )
        )


def _factor(weighted: Iterable[tuple[float, NDArray[np.float64]]]) -> scipy.sparse.csr_array:
    """Memberships side by side, each times the root of its weight."""
    scaled = [scipy.sparse.csr_array(rows * np.sqrt(weight)) for weight, rows in weighted]
    return scipy.sparse.csr_array(scipy.sparse.hstack(scaled))


def accumulated_co_association(history: Sequence[Snapshot]) -> scipy.sparse.coo_array:
    """Probability that two clients share a cluster, averaged over rounds (BCFL, Figure 4).

    For rounds t and associations h with weights w (all of which a merged one is a mixture): mean_t
    sum_h w_h sum_i P_h[j, i] P_h[j', i], with P_h the serving probabilities. No matching of
    clusters between hypotheses is needed.

    Args:
        history: snapshots of all rounds.

    Returns:
        Upper triangle of the (clients, clients) matrix, float64.

    Raises:
        ValueError: the history is empty.
    """
    if not history:
        raise ValueError("history must hold at least one round, got none")
    factors = scipy.sparse.hstack([snapshot.co_association() for snapshot in history]).tocsr()
    product = scipy.sparse.triu(factors @ factors.T, k=1).tocoo() / len(history)
    return scipy.sparse.coo_array(product)


def ancestor_shares(history: Sequence[Snapshot], round: int) -> NDArray[np.float64]:
    """Share of the present weight that descends from each hypothesis of a past round.

    With weights that accumulate over rounds this is the smoothed posterior over past associations
    given all rounds. The weight of a merged hypothesis is passed on to its parents in the shares
    that they had when merged.

    Args:
        history: snapshots of all rounds.
        round: the past round, from 1.

    Returns:
        Shares that sum to 1, float64 of shape (hypotheses and proposals of that round,).

    Raises:
        ValueError: there is no such round.
    """
    if not is_whole(round, 1) or round > len(history):
        raise ValueError(
            f"round must be a whole number between 1 and {len(history)}, got {round!r}"
        )
    shares = np.exp(history[-1].log_weights)
    shares = np.concatenate([shares, np.zeros(len(history[-1].proposals))])
    for later, earlier in zip(
        reversed(history[round:]), reversed(history[round - 1 : -1]), strict=True
    ):
        older = np.zeros(len(earlier.associations) + len(earlier.proposals))
        for share, origins in zip(shares, later.origins, strict=True):
            for parent, fraction in origins:
                older[parent] += share * fraction
        shares = older
    total: NDArray[np.float64] = shares / shares.sum()
    return total


def smoothed_associations(history: Sequence[Snapshot], round: int) -> NDArray[np.float64]:
    """Association probabilities of a past round, weighted by `ancestor_shares`.

    They are what each hypothesis believed in that round, see
    `bcfl.hypotheses.Snapshot.memberships`. Clusters are matched one to one to those of the
    hypothesis with the largest share, by shared clients; unmatched clusters follow.

    Args:
        history: snapshots of all rounds.
        round: the past round, from 1.

    Returns:
        float64 of shape (clients, clusters).

    Raises:
        ValueError: there is no such round.
    """
    shares = ancestor_shares(history, round)
    snapshot = history[round - 1]
    proposed = [p.association for p in snapshot.proposals]
    past = [association.serving for association in (*snapshot.associations, *proposed)]
    memberships = [*snapshot.memberships, *(association.serving for association in proposed)]
    leading = past[int(shares.argmax())]
    total = np.zeros((len(leading), max(serving.shape[1] for serving in past)))
    for share, serving, membership in zip(shares, past, memberships, strict=True):
        if share > 0:
            total[:, best_matching(serving.T @ leading)] += share * membership
    return given_seen(total, memberships)
