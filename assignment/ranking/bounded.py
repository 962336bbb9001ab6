"""Associations with bounded cluster sizes, ranked by splitting on client labels.

The second best association of a part differs from its best by a least-cost cycle in the residual
graph over clusters, which has K + 1 nodes for any number of clients. Splitting acts on labels
and never on replicated columns, which would rank permutations of one and the same association. The
work per association grows with clients times clusters and with the cube of the number of clusters.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from assignment.arrays import FloatArray, IntArray, frozen
from assignment.costs import cost_of, row_gaps
from assignment.feasible import best_labels
from assignment.paths import path_levels
from assignment.problem import Bounds, Problem, unbounded
from assignment.ranked import Search
from assignment.ranking.splitting import Second, ascending
from assignment.residual import (
    client_moves,
    compact_graph,
    moves_between_clusters,
    slack_moves,
)


@dataclass(frozen=True, eq=False)
class Part:
    """The associations that keep some clients in place and bar others from some clusters.

    Attributes:
        labels: cluster of every client in the best of them, int64 of shape (clients,).
        fixed: clients that stay where `labels` puts them.
        barred: clients of the forbidden (client, cluster) pairs.
        barred_from: their clusters, in the same order.
    """

    labels: IntArray
    fixed: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()
    barred_from: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Sizes:
    """Data of a search for second-best associations.

    Attributes:
        gaps: costs above each row's minimum in nats, float64 of shape (clients, clusters).
        bounds: bounds on cluster sizes.
        best: cluster of every client in the best association of all, int64 of shape (clients,).
    """

    gaps: FloatArray
    bounds: Bounds
    best: IntArray


def murty_search(problem: Problem, wanted: int | None = None) -> Search:
    """All associations within the bounds, in ascending order, by splitting on labels.

    Raises:
        InfeasibleError: forbidden pairs leave no association within the bounds.
    """
    gaps = row_gaps(problem.cost)[1]
    bounds = problem.bounds or unbounded(problem.clients, problem.clusters)
    labels = frozen(best_labels(gaps, bounds))
    find = partial(_second_best, Sizes(gaps, bounds, labels))
    return Search(
        labels, cost_of(problem.cost, labels), ascending(partial(Part, labels), find, labels)
    )


def _second_best(sizes: Sizes, part: Part) -> Second[Part] | None:
    gaps, clients = sizes.gaps, np.arange(len(sizes.gaps))
    changes = _least_cycle(sizes, part)
    if not changes:
        return None
    labels = part.labels.copy()
    for client, cluster in changes:
        labels[client] = cluster
    client = changes[0][0]
    return Second(
        labels,
        float((gaps[clients, labels] - gaps[clients, sizes.best]).sum()),
        Part(part.labels, (*part.fixed, client), part.barred, part.barred_from),
        Part(
            labels,
            part.fixed,
            (*part.barred, client),
            (*part.barred_from, int(part.labels[client])),
        ),
    )


def _least_cycle(sizes: Sizes, part: Part) -> list[tuple[int, int]]:
    """(client, new cluster) of every client that moves; empty if no cycle is permitted."""
    gaps, labels = sizes.gaps, part.labels
    extra = gaps - gaps[np.arange(len(gaps)), labels][:, None]
    extra[list(part.barred), list(part.barred_from)] = np.inf
    extra[list(part.fixed)] = np.inf
    moves = moves_between_clusters(extra, labels)
    graph = compact_graph(moves, moves.sizes > 0, *slack_moves(moves.sizes, sizes.bounds))
    levels, nodes = path_levels(graph.costs), graph.nodes
    back = levels[-1].T[:-1]
    cycles = moves.least[np.ix_(nodes, nodes)] + back[:, :-1]
    if len(nodes) < len(moves.least):
        cycles = np.column_stack([cycles, graph.outlet_costs + back[:, -1]])
    source, target = divmod(int(np.argmin(cycles)), cycles.shape[1])
    if cycles[source, target] == np.inf:
        return []
    first = [int(nodes[source])]
    if target == len(nodes):
        first.append(int(graph.outlets[source]))
    return client_moves(moves, [*first, *graph.path(levels, target, source)])
