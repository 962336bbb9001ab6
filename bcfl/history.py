"""What is kept of each round for analysis: associations and weights, not models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bcfl.association import Association
from bcfl.hypothesis import HypothesisSet


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The hypotheses after one round, without their models.

    Attributes:
        round: rounds done.
        log_weights: (hypotheses,) log probabilities, nats.
        associations: whose model each client uses, per hypothesis.
        parents: positions in the snapshot before, per hypothesis.
        log_captured_mass: see `HypothesisSet`.
    """

    round: int
    log_weights: NDArray[np.float64]
    associations: tuple[Association, ...]
    parents: tuple[tuple[int, ...], ...]
    log_captured_mass: float

    @classmethod
    def of(cls, hypotheses: HypothesisSet) -> Snapshot:
        """Take what is worth keeping."""
        return cls(
            hypotheses.round,
            hypotheses.log_weights,
            tuple(h.association for h in hypotheses),
            tuple(h.parents for h in hypotheses),
            hypotheses.log_captured_mass,
        )

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
