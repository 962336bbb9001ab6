"""What is believed of an association before a round's data are seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import UNSEEN, Association


@dataclass(frozen=True)
class AssociationPrior:
    """Each client chooses its cluster on its own: uniformly, staying where it was, or by size.

    BCFL (equation 11) lets the association be free in every round, which is the uniform prior. A
    sticky prior makes membership a quantity that data over rounds can pin down. A prior by size
    expects few large clusters: a cluster that is split for a few nats does not pay.

    Attributes:
        staying: probability that a client stays in its cluster; the rest is shared by the other
            clusters. None is uniform. A client never seen chooses uniformly.
        concentration: the shares of the clusters have a symmetric Dirichlet prior with this
            parameter, so a client chooses a cluster in proportion to the number of other clients
            that were in it, plus the concentration. Given the association before, clients choose
            on their own: the exact prior of all together would not rank by a cost matrix. None
            knows of no sizes.
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
        """(clients, clusters) log probability of each cluster, nats; rows sum to 1 as weights."""
        num_clusters = association.num_clusters
        uniform = np.full((len(clients), num_clusters), -np.log(num_clusters))
        rows = [association.position[client] for client in clients]
        if self.concentration is not None:
            others = association.serving.sum(axis=0) - association.serving[rows]
            counts = others + self.concentration
            return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))
        if self.staying is None or num_clusters == 1:
            return uniform
        before = association.serving[rows]
        leaving = (1.0 - self.staying) / (num_clusters - 1)
        sticky = np.log(before * self.staying + (1.0 - before) * leaving)
        return np.where((association.labels[rows] == UNSEEN)[:, None], uniform, sticky)


UNIFORM = AssociationPrior()
"""Every cluster is as likely as any other."""
