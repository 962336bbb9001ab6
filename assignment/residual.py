"""Residual graphs over clusters: least costs of moving one client from cluster to cluster.

Node i < K is cluster i, node K is the slack that carries the bounds on cluster sizes. An edge
i -> k has the least extra cost of moving a client from i to k; i -> slack is open where i may grow
and slack -> i where i may shrink. K + 1 nodes stand for any number of clients.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.paths import shortest_path
from assignment.problem import Bounds


@dataclass(frozen=True, eq=False, kw_only=True)
class Moves:
    """Cheapest moves of one client between clusters, given all present clusters.

    Attributes:
        extra: cost of every client's move to every cluster above its present one in nats, float64
            of shape (clients, clusters); +inf where forbidden.
        members: clients sorted by present cluster, int64 of shape (clients,).
        starts: where each cluster's members begin, int64 of shape (clusters,).
        sizes: clients per cluster, int64 of shape (clusters,).
        least: least extra cost from cluster to cluster in nats, float64 (clusters, clusters).
    """

    extra: FloatArray
    members: IntArray
    starts: IntArray
    sizes: IntArray
    least: FloatArray

    def cheapest_client(self, source: int, target: int) -> int:
        """The member of one cluster that moves to another at least cost.

        Args:
            source: index of the present cluster.
            target: index of the new cluster.
        """
        members = self._members(source)
        return int(members[np.argmin(self.extra[members, target])])

    def cheapest_clients(self, source: int, target: int) -> IntArray:
        """All members of one cluster that move to another at least cost, int64, ascending.

        Args:
            source: index of the present cluster.
            target: index of the new cluster.
        """
        members = self._members(source)
        tied: IntArray = members[self.extra[members, target] == self.least[source, target]]
        return tied

    def _members(self, cluster: int) -> IntArray:
        start = self.starts[cluster]
        return self.members[start : start + self.sizes[cluster]]


def moves_between_clusters(extra: FloatArray, labels: IntArray) -> Moves:
    """Reduce moves of clients to moves between clusters.

    Args:
        extra: extra cost of every move in nats, shape (clients, clusters); see `Moves`.
        labels: present cluster of every client, int64 of shape (clients,).
    """
    clusters = extra.shape[1]
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=clusters)
    starts = np.cumsum(sizes) - sizes
    filled = sizes.nonzero()[0]
    if len(filled) == clusters:
        least = np.minimum.reduceat(extra[members], starts, axis=0)
    else:
        least = np.full((clusters, clusters), np.inf)
        least[filled] = np.minimum.reduceat(extra[members], starts[filled], axis=0)
    least.flat[:: clusters + 1] = np.inf
    return Moves(extra=extra, members=members, starts=starts, sizes=sizes, least=least)


def client_moves(moves: Moves, path: list[int]) -> list[tuple[int, int]]:
    """Moves of clients along a path over clusters; steps through the slack move no client.

    Args:
        moves: cheapest moves between clusters.
        path: clusters, and `SLACK`.

    Returns:
        Pairs (client, new cluster).
    """
    return [
        (moves.cheapest_client(source, target), target)
        for source, target in pairwise(path)
        if SLACK not in (source, target)
    ]


def residual_graph(least: FloatArray, grows: BoolArray, shrinks: BoolArray) -> FloatArray:
    """Edge costs in nats of the residual graph, float64 of shape (clusters + 1, clusters + 1).

    Args:
        least: least extra cost of a move from cluster to cluster, shape (clusters, clusters).
        grows: clusters that may take one more client, shape (clusters,).
        shrinks: clusters that may lose one client, shape (clusters,).
    """
    slack = len(least)
    graph = np.empty((slack + 1, slack + 1))
    graph[:slack, :slack] = least
    graph[:slack, slack] = np.where(grows, 0.0, np.inf)
    graph[slack, :slack] = np.where(shrinks, 0.0, np.inf)
    graph.flat[:: slack + 2] = 0.0
    return graph


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualGraph:
    """The residual graph without empty clusters, from which no client can move on.

    A path enters an empty cluster only to go on to the slack, so that the cheapest one stands for
    all as part of the edge to the slack.

    Attributes:
        nodes: clusters that are nodes, int64 of shape (nodes,); the slack is the last node.
        costs: edge costs in nats, float64 of shape (nodes + 1, nodes + 1).
        outlets: cheapest empty cluster of each node, int64 of shape (nodes,).
        outlet_costs: cost in nats of moving there, +inf where none may grow, float64 (nodes,).
        by_outlet: nodes whose edge to the slack goes there, bool of shape (nodes,).
    """

    nodes: IntArray
    costs: FloatArray
    outlets: IntArray
    outlet_costs: FloatArray
    by_outlet: BoolArray

    def path(self, levels: list[FloatArray], source: int, target: int) -> list[int]:
        """Clusters along a least path, the slack being the number of clusters of the problem.

        Args:
            levels: least path costs of `path_levels`.
            source: first node of this graph.
            target: last node of this graph.
        """
        slack = len(self.nodes)
        path: list[int] = []
        for before, node in pairwise([-1, *shortest_path(levels, source, target)]):
            if node == slack and before >= 0 and self.by_outlet[before]:
                path.append(int(self.outlets[before]))
            path.append(SLACK if node == slack else int(self.nodes[node]))
        return path


SLACK = -1
"""The slack on a path of clusters."""


def compact_graph(
    moves: Moves, kept: BoolArray, grows: BoolArray, shrinks: BoolArray
) -> ResidualGraph:
    """The residual graph over some of the clusters.

    Args:
        moves: cheapest moves between clusters.
        kept: clusters that are nodes, bool of shape (clusters,); all others are empty.
        grows: clusters that may take one more client, shape (clusters,).
        shrinks: clusters that may lose one client, shape (clusters,).
    """
    nodes, empty = kept.nonzero()[0], (~kept & grows).nonzero()[0]
    least = moves.least if len(nodes) == len(kept) else moves.least[np.ix_(nodes, nodes)]
    costs = residual_graph(least, grows[nodes], shrinks[nodes])
    outlet_costs, outlets = np.full(len(nodes), np.inf), nodes
    if len(empty):
        leaving = moves.least[np.ix_(nodes, empty)]
        outlets, outlet_costs = empty[leaving.argmin(axis=1)], leaving.min(axis=1)
    by_outlet = outlet_costs < costs[:-1, -1]
    costs[:-1, -1] = np.minimum(costs[:-1, -1], outlet_costs)
    return ResidualGraph(
        nodes=nodes,
        costs=costs,
        outlets=outlets,
        outlet_costs=outlet_costs,
        by_outlet=by_outlet,
    )


def slack_moves(sizes: IntArray, bounds: Bounds) -> tuple[BoolArray, BoolArray]:
    """Clusters that may grow and clusters that may shrink, each bool of shape (clusters,).

    Args:
        sizes: clients per cluster, int64 of shape (clusters,).
        bounds: bounds on cluster sizes.
    """
    return sizes < bounds.upper, sizes > bounds.lower


def cluster_prices(gaps: FloatArray, labels: IntArray, bounds: Bounds) -> FloatArray:
    """Dual prices of clusters that prove an association the best, up to rounding.

    Cost plus price of a client's own cluster is then the least of its row, and a price is positive
    only at the upper and negative only at the lower bound of its cluster: shortest paths of the
    residual graph, by Bellman and Ford's recursion.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        labels: cluster of every client in the best association, int64 of shape (clients,).
        bounds: bounds on cluster sizes.

    Returns:
        Prices in nats, float64 of shape (clusters,).
    """
    extra = gaps - gaps[np.arange(len(gaps)), labels][:, None]
    moves = moves_between_clusters(extra, labels)
    graph = residual_graph(moves.least, *slack_moves(moves.sizes, bounds))
    distances = np.zeros(len(graph))
    for _ in range(len(graph)):
        distances = np.minimum(distances, (distances[:, None] + graph).min(axis=0))
    prices: FloatArray = distances[-1] - distances[:-1]
    return prices


def reduced_costs(gaps: FloatArray, labels: IntArray, prices: FloatArray) -> FloatArray:
    """Costs plus prices above those of each client's own cluster, each rounded once.

    Differences that are small keep their digits however large costs and prices are: errors of the
    additions are added up as well (Knuth's two-sum).

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters); +inf is forbidden.
        labels: cluster of every client, int64 of shape (clients,).
        prices: prices of the clusters in nats, shape (clusters,).

    Returns:
        float64 of shape (clients, clusters), nats; 0 at `labels`, +inf where forbidden.
    """
    permitted = np.isfinite(gaps)
    finite = np.where(permitted, gaps, 0.0)
    cost, cost_error = _two_sum(finite, -finite[np.arange(len(gaps)), labels][:, None])
    price, price_error = _two_sum(prices, -prices[labels][:, None])
    total, error = _two_sum(cost, price)
    return np.where(permitted, total + (error + (cost_error + price_error)), np.inf)


def _two_sum(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded sum and its rounding error."""
    total = first + second
    other = total - first
    return total, (first - (total - other)) + (second - other)
