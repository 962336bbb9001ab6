"""A pull towards several models, each with its own strength."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from bcfl.model import ALL, Part
from bcfl.posterior import Posterior
from bcfl.terms import Sees, check_weight


@dataclass(frozen=True)
class Attraction:
    """weight / 2 sum_k importance_k ||parameters - cluster_k||^2: FedSoft.

    Ruan and Joe-Wong, "FedSoft: Soft Clustered Federated Learning with Proximal Local Updating"
    (2022).

    Attributes:
        weight: lambda.
        importances: of each cluster for the client that trains, in the order of the clusters.
        part: parameters that are pulled; running statistics never are.
    """

    weight: float
    importances: tuple[float, ...]
    part: Part = ALL
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)
        if not self.importances or not all(
            np.isfinite(one) and one >= 0 for one in self.importances
        ):
            raise ValueError(
                f"importances must be finite and at least 0, one per cluster, got "
                f"{self.importances}"
            )

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """The models of all clusters."""
        del shares, start
        return tuple(clusters)

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the weighted sum of squared distances from the clusters' models."""
        del start
        pairs = zip(self.importances, references, strict=True)
        distances = [importance * (live - other).square().sum() for importance, other in pairs]
        return 0.5 * sum(distances[1:], start=distances[0])
