"""Brute force over every association: the reference that shares no code with the package."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True)
class Enumeration:
    costs: np.ndarray
    labels: np.ndarray

    @property
    def probabilities(self):
        weights = np.exp(self.costs.min() - self.costs)
        return weights / weights.sum()

    @property
    def log_partition(self):
        return np.log(np.exp(self.costs.min() - self.costs).sum()) - self.costs.min()


def enumerate_associations(cost, lower=None, upper=None):
    """Costs ascending and labels of all feasible associations; None if there are none."""
    clients, clusters = cost.shape
    lower = np.zeros(clusters, dtype=int) if lower is None else np.asarray(lower)
    upper = np.full(clusters, clients) if upper is None else np.asarray(upper)
    found = []
    for labels in itertools.product(range(clusters), repeat=clients):
        sizes = np.bincount(labels, minlength=clusters)
        total = sum(cost[client, cluster] for client, cluster in enumerate(labels))
        if total < np.inf and (sizes >= lower).all() and (sizes <= upper).all():
            found.append((total, labels))
    if not found:
        return None
    found.sort()
    return Enumeration(
        np.array([total for total, _ in found]), np.array([labels for _, labels in found])
    )


@pytest.fixture(scope="session")
def enumerated():
    return enumerate_associations
