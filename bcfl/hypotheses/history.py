"""What is kept of each round for analysis: associations and weights, not models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import assignment
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.matching import best_matching


@dataclass(frozen=True, eq=False)
class Proposed:
    """A proposal of one round, without its models.

    Attributes:
        association: whose model each client would use.
        parent: position, in the snapshot before, of the hypothesis that it is an alternative to.
        kind: how it was made, such as `split`.
    """

    association: Association
    parent: int
    kind: str


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The hypotheses after one round, without their models.

    Attributes:
        round: rounds done.
        log_weights: (hypotheses,) log probabilities, nats.
        associations: whose model each client uses, per hypothesis.
        parents: positions, per hypothesis, in the snapshot before: hypotheses, then proposals.
        shares: how much of the weight came from each parent, per hypothesis; empty is equally.
        log_captured_mass: see `HypothesisSet`.
        proposals: alternatives made in this round, that compete in the next.
    """

    round: int
    log_weights: NDArray[np.float64]
    associations: tuple[Association, ...]
    parents: tuple[tuple[int, ...], ...]
    log_captured_mass: float
    proposals: tuple[Proposed, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()

    def __repr__(self) -> str:
        return (
            f"Snapshot(round {self.round}, {len(self.associations)} hypotheses, "
            f"{len(self.proposals)} proposals)"
        )

    @classmethod
    def of(cls, hypotheses: HypothesisSet) -> Snapshot:
        """Take what is worth keeping."""
        return cls(
            hypotheses.round,
            hypotheses.log_weights,
            tuple(h.association for h in hypotheses),
            tuple(h.parents for h in hypotheses),
            hypotheses.log_captured_mass,
            tuple(Proposed(h.association, h.parents[0], h.kind) for h in hypotheses.proposals),
            tuple(h.parent_shares for h in hypotheses),
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """(hypotheses,) probabilities."""
        return np.exp(self.log_weights)

    @property
    def effective_number(self) -> float:
        """1 / sum of squared weights, see `HypothesisSet.effective_number`."""
        return float(assignment.effective_number(self.log_weights))

    @property
    def origins(self) -> list[list[tuple[int, float]]]:
        """For each hypothesis, then each proposal: parents and shares of the weight."""
        equally = [(1.0 / max(len(parents), 1),) * len(parents) for parents in self.parents]
        rows = zip(self.parents, self.shares or equally, strict=True)
        origins = [list(zip(parents, shares, strict=True)) for parents, shares in rows]
        return origins + [[(proposal.parent, 1.0)] for proposal in self.proposals]

    def co_association(self) -> sparse.csr_array:
        """(clients, clusters of all hypotheses) factor of the co-association probabilities.

        Its product with its own transpose is, off the diagonal, the probability that two clients
        share a cluster.
        """
        scaled = [
            sparse.csr_array(association.serving * np.exp(0.5 * log_weight))
            for log_weight, association in zip(self.log_weights, self.associations, strict=True)
        ]
        return sparse.csr_array(sparse.hstack(scaled))


def accumulated_co_association(history: Sequence[Snapshot]) -> sparse.coo_array:
    """Probability that two clients share a cluster, averaged over rounds, upper triangle.

    For rounds t and hypotheses h with weights w: mean_t sum_h w_h sum_i P_h[j, i] P_h[j', i],
    with P_h the serving probabilities (the accumulated probability of BCFL, Figure 4). It needs no
    matching of clusters between hypotheses.

    Raises:
        ValueError: no round was done.
    """
    if not history:
        raise ValueError("history must hold at least one round, got none")
    factors = sparse.hstack([snapshot.co_association() for snapshot in history]).tocsr()
    product = sparse.triu(factors @ factors.T, k=1).tocoo() / len(history)
    return sparse.coo_array(product)


def ancestor_shares(history: Sequence[Snapshot], round: int) -> NDArray[np.float64]:
    """How much of today's weight descends from each hypothesis of a past round.

    With weights that accumulate over rounds this is the posterior over the past associations given
    all rounds (smoothed); otherwise it is what its name says. A hypothesis that was merged from
    several passes its weight on to their parents in the shares that they had then.

    Args:
        history: snapshots of all rounds.
        round: the past round, from 1.

    Returns:
        (hypotheses and proposals of that round,) shares that sum to 1.

    Raises:
        ValueError: there is no such round.
    """
    if not 1 <= round <= len(history):
        raise ValueError(f"round must lie between 1 and {len(history)}, got {round}")
    shares = np.exp(history[-1].log_weights)
    shares = np.concatenate([shares, np.zeros(len(history[-1].proposals))])
    for later, earlier in zip(
        reversed(history[round:]), reversed(history[round - 1 : -1]), strict=True
    ):
        older = np.zeros(len(earlier.associations) + len(earlier.proposals))
        for share, origins in zip(shares, later.origins, strict=True):
            for parent, part in origins:
                older[parent] += share * part
        shares = older
    total: NDArray[np.float64] = shares / shares.sum()
    return total


def smoothed_associations(history: Sequence[Snapshot], round: int) -> NDArray[np.float64]:
    """(clients, clusters) association probabilities of a past round, weighed from today.

    Clusters are matched to those of the hypothesis with the largest share, one to one by shared
    clients; clusters that are left over follow.

    Raises:
        ValueError: there is no such round.
    """
    shares = ancestor_shares(history, round)
    snapshot = history[round - 1]
    past = [*snapshot.associations, *(p.association for p in snapshot.proposals)]
    leading = past[int(shares.argmax())].serving
    total = np.zeros((len(leading), max(association.num_clusters for association in past)))
    for share, association in zip(shares, past, strict=True):
        if share > 0:
            serving = association.serving
            total[:, best_matching(serving.T @ leading)] += share * serving
    return total
