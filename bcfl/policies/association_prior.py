"""What is believed of an association before a round's data are seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bcfl.association import UNSEEN, Association


@dataclass(frozen=True)
class AssociationPrior:
    """Each client chooses its cluster on its own: uniformly, or staying where it was.

    BCFL (equation 11) lets the association be free in every round, which is the uniform prior. A
    sticky prior makes membership a quantity that data over rounds can pin down.

    Attributes:
        staying: probability that a client stays in its cluster; the rest is shared by the other
            clusters. None is uniform. A client never seen chooses uniformly.
    """

    staying: float | None = None

    def __post_init__(self) -> None:
        if self.staying is not None and not 0 < self.staying < 1:
            raise ValueError(f"staying must lie between 0 and 1 or be None, got {self.staying}")

    def log_probabilities(
        self, association: Association, clients: Sequence[str]
    ) -> NDArray[np.float64]:
        """(clients, clusters) log probability of each cluster, nats; rows sum to 1 as weights."""
        num_clusters = association.num_clusters
        uniform = np.full((len(clients), num_clusters), -np.log(num_clusters))
        if self.staying is None or num_clusters == 1:
            return uniform
        rows = [association.position[client] for client in clients]
        before = association.serving[rows]
        leaving = (1.0 - self.staying) / (num_clusters - 1)
        sticky = np.log(before * self.staying + (1.0 - before) * leaving)
        return np.where((association.labels[rows] == UNSEEN)[:, None], uniform, sticky)


UNIFORM = AssociationPrior()
"""Every cluster is as likely as any other."""
