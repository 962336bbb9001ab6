"""Methods by name, and what their runs believe of pairs of clients."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from bcfl import Federation
from experiments import datasets, models, partitions
from tests.recipes import built

GROUPS, CLIENTS, ROUNDS, DRAWS = 4, 24, 12, 2


def method(name, **options):
    return built(name, **options)


@dataclass(frozen=True)
class Pairs:
    """Pairs of clients of all draws.

    Attributes:
        same: (pairs,) whether the two are of one group.
        marginal: (pairs,) probability that they share a cluster, from each one's probabilities.
        graph: (pairs,) the same from the edges of the association graph.
    """

    same: np.ndarray
    marginal: np.ndarray
    graph: np.ndarray


def edges(run, rows, columns):
    """Probabilities of the association graph; pairs without an edge have none."""
    graph = run.association_graph()
    found = [
        graph.get_edge_data(run.clients[i], run.clients[j], {}).get("probability", 0.0)
        for i, j in zip(rows, columns, strict=True)
    ]
    return np.array(found)


@cache
def believed(name, samples):
    """Run a method on rotated digits, with so many samples per client, and look at all pairs."""
    digits, parts = datasets.load("optdigits"), []
    for seed in range(DRAWS):
        clients = partitions.rotated(
            digits, groups=GROUPS, clients=CLIENTS, seed=seed, samples_per_client=samples
        )
        recipe = method(name, num_clusters=GROUPS)
        run = Federation(clients, models.mlp(64, 32, 10), recipe, seed=100).run(ROUNDS)
        rows, columns = np.triu_indices(CLIENTS, 1)
        groups = np.array([run.groups[client] for client in run.clients])
        p = run.association_probabilities()
        parts.append(
            (
                groups[rows] == groups[columns],
                (p @ p.T)[rows, columns],
                edges(run, rows, columns),
            )
        )
    return Pairs(*map(np.concatenate, zip(*parts, strict=True)))


@pytest.fixture
def pairs():
    return believed
