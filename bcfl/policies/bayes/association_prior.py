"""Priors over associations: uniform (BCFL, Eq. 11), sticky, or by cluster size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import UNSEEN, Association


@dataclass(frozen=True)
class AssociationPrior:
    """Row-separable prior: each client's cluster is independent given the previous association.

    BCFL (equation 11) leaves the association free in every round, which is the uniform prior. A
    sticky prior lets data of several rounds identify memberships. A prior by size favours few large
    clusters, so that splitting one must gain more than a few nats.

    Attributes:
        staying: probability that a client stays in its cluster; the other clusters share the rest.
            None is uniform. A client never seen has a uniform prior.
        concentration: parameter of a symmetric Dirichlet prior on the shares of the clusters: a
            client's probability of a cluster is proportional to the number of other clients that
            were in it plus the concentration. This conditions on the previous association, since
            the exact joint prior would not be separable. None leaves sizes out.
    """

    staying: float | None = None
    concentration: float | None = None

    def __post_init__(self) -> None:
        if self.staying is not None and not 0 < self.staying < 1:
            raise ValueError(f"staying must lie between 0 and 1 or be None, got {self.staying}")
        if self.concentration is not None and not self.concentration > 0:
            raise ValueError(
                f"concentration must be greater than 0 or None, got {self.concentration}"
            )
        if self.staying is not None and self.concentration is not None:
            raise ValueError("staying and concentration cannot both be given")

    def log_probabilities(
        self, association: Association, clients: Sequence[str]
    ) -> NDArray[np.float64]:
        """Log prior probability of each cluster for each client.

        Args:
            association: of all clients, before the round.
            clients: names of the rows.

        Returns:
            float64 of shape (clients, clusters), nats; exponentials of each row sum to 1.
        """
        num_clusters = association.num_clusters
        uniform = np.full((len(clients), num_clusters), -np.log(num_clusters))
        rows = [association.position[client] for client in clients]
        if self.concentration is not None:
            counts = association.serving.sum(axis=0) - association.serving[rows]
            counts = counts + self.concentration
            return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))
        if self.staying is None or num_clusters == 1:
            return uniform
        before = association.serving[rows]
        leaving = (1.0 - self.staying) / (num_clusters - 1)
        sticky = np.log(before * self.staying + (1.0 - before) * leaving)
        return np.where((association.labels[rows] == UNSEEN)[:, None], uniform, sticky)


UNIFORM = AssociationPrior()
"""All clusters are equally probable."""
