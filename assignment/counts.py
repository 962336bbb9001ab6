"""Exact sums over all associations with bounded cluster sizes, by counting clients.

The bounds depend on the clients placed so far only through the clusters' counts, so the clients,
taken one by one, form a Markov chain over count vectors. A backward pass gives the summed
weight of all completions of every count vector, a forward pass the probability of each
(forward-backward; Rabiner, 1989). One cluster's count follows from the others' and is left out, as
are clusters that can take no client.

All costs are taken above those of the best association, under dual prices on the clusters. Log
weights on the way of probable associations are thus a few nats, and keep their digits where bounds
force a client to pay any amount.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from assignment.arrays import FloatArray, IntArray, logsumexp
from assignment.feasible import best_labels
from assignment.problem import Bounds
from assignment.residual import cluster_prices, reduced_costs

MAX_STATES = 10_000_000
"""Default budget: clients times count vectors, each a float64 (80 MB)."""


class StateBudgetError(ValueError):
    """Exact counting needs more states than its budget allows."""


def number_of_states(clients: int, bounds: Bounds) -> int:
    """Number of states of `count_chain`: clients times count vectors.

    Args:
        clients: number of clients.
        bounds: bounds on cluster sizes.
    """
    sizes = sorted(int(most) + 1 for most in bounds.upper)
    return (clients + 1) * prod(sizes[:-1])


@dataclass(frozen=True, eq=False, kw_only=True)
class CountChain:
    """The distribution of associations within bounds, as a chain over count vectors.

    Attributes:
        extra: costs plus prices above those of the best association in nats, float64 of shape
            (clients, clusters).
        best_gap: cost of the best association above the row minima in nats.
        open_clusters: clusters that can take a client, ascending, int64 of shape (open clusters,).
        implied: the place among these of the one whose count follows from the others'.
        completions: log of the summed weight of all completions in nats, one array per number of
            clients already placed (clients + 1 of them), indexed by the counts of the others. The
            last holds minus the prices of the sizes' differences from those of the best.
    """

    extra: FloatArray
    best_gap: float
    open_clusters: IntArray
    implied: int
    completions: tuple[FloatArray, ...]

    @property
    def log_partition_over_best(self) -> float:
        """Log of the summed weight of all associations over that of the best, nats, at least 0."""
        return float(self.completions[0].flat[0])

    def transitions(self, client: int) -> FloatArray:
        """Probability of each open cluster given the counts so far, shape (open, *counts)."""
        after = self.completions[client + 1]
        log_weights = _log_placements(after, self.extra[client, self.open_clusters], self.implied)
        before = self.completions[client]
        reference = np.where(np.isfinite(before), before, 0.0)
        probabilities: FloatArray = np.exp(log_weights - reference)
        return probabilities

    def marginals(self) -> tuple[FloatArray, float]:
        """Probability of every client in every cluster, and the entropy of associations in nats.

        Returns:
            probabilities: float64 of shape (clients, clusters), rows sum to one.
            entropy: log partition function plus mean excess over the best.
        """
        table = np.zeros(self.extra.shape)
        placed = np.zeros(())
        for client, (state, transition) in enumerate(self._forward()):
            placed = transition * state
            table[client, self.open_clusters] = placed.reshape(len(placed), -1).sum(axis=1)
        probabilities = table / table.sum(axis=1, keepdims=True)
        mean_excess = _mean(probabilities, self.extra)
        mean_excess += _mean(_advance(placed, self.implied), -self.completions[-1])
        return probabilities, self.log_partition_over_best + mean_excess

    def co_association(self) -> FloatArray:
        """Probability that two clients share a cluster, float64 of shape (clients, clients).

        The work is the square of the number of clients times clusters times count vectors.
        """
        clients = len(self.extra)
        together = np.eye(clients)
        transitions = [self.transitions(client) for client in range(clients)]
        for first, (state, transition) in enumerate(self._forward()):
            marked = np.stack(
                [
                    _advance(_only(transition * state, cluster), self.implied)
                    for cluster in range(len(transition))
                ]
            )
            for second in range(first + 1, clients):
                together[first, second] = (marked * transitions[second]).sum()
                marked = np.stack(
                    [_advance(transitions[second] * counts, self.implied) for counts in marked]
                )
        return np.maximum(together, together.T)

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """Independent draws of associations. See `JointDistribution.sample`."""
        clients = len(self.extra)
        strides = _strides(self.completions[0].shape, self.implied)
        places = np.empty((n, clients), dtype=np.int64)
        at = np.zeros(n, dtype=np.int64)
        for client in range(clients):
            probabilities = self.transitions(client).reshape(len(self.open_clusters), -1)[:, at]
            cumulative = np.cumsum(probabilities, axis=0)
            draws = rng.random(n) * cumulative[-1]
            places[:, client] = (cumulative <= draws).sum(axis=0)
            at += strides[places[:, client]]
        labels: IntArray = self.open_clusters[places]
        return labels

    def _forward(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Per client the probability of each count vector so far, and its transitions."""
        state = np.zeros(self.completions[0].shape)
        state.flat[0] = 1.0
        for client in range(len(self.extra)):
            transition = self.transitions(client)
            yield state, transition
            state = _advance(transition * state, self.implied)


def count_chain(gaps: FloatArray, bounds: Bounds, max_states: int = MAX_STATES) -> CountChain:
    """Sum over all associations within the bounds.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: bounds on cluster sizes.
        max_states: largest number of clients times count vectors.

    Returns:
        The chain.

    Raises:
        InfeasibleError: forbidden pairs leave no association within the bounds.
        StateBudgetError: more states than `max_states`.
    """
    needed = number_of_states(len(gaps), bounds)
    if needed > max_states:
        raise StateBudgetError(
            f"exact counting needs {needed} states (clients x count vectors), the budget is "
            f"{max_states}; raise max_states or use method 'mcmc' or 'bp'"
        )
    labels = best_labels(gaps, bounds)
    prices = cluster_prices(gaps, labels, bounds)
    extra = reduced_costs(gaps, labels, prices)
    open_clusters = np.flatnonzero(bounds.upper)
    implied = int(np.argmax(bounds.upper[open_clusters]))
    completions = [_final_weights(labels, prices, bounds, open_clusters, implied)]
    for row in extra[::-1, open_clusters]:
        completions.append(logsumexp(_log_placements(completions[-1], row, implied), axis=0))
    best_gap = float(gaps[np.arange(len(gaps)), labels].sum())
    return CountChain(
        extra=extra,
        best_gap=best_gap,
        open_clusters=open_clusters,
        implied=implied,
        completions=tuple(completions[::-1]),
    )


def _final_weights(
    best: IntArray, prices: FloatArray, bounds: Bounds, open_clusters: IntArray, implied: int
) -> FloatArray:
    """Log weights of final count vectors by the prices of sizes other than those of the best."""
    sizes = np.bincount(best, minlength=len(prices))
    counts = np.indices(tuple(np.delete(bounds.upper[open_clusters], implied) + 1))
    rest = len(best) - counts.sum(axis=0)
    allowed, weights = np.ones(rest.shape, dtype=bool), np.zeros(rest.shape)
    by_cluster = np.insert(counts, implied, rest, axis=0)
    for cluster, count in zip(open_clusters.tolist(), by_cluster, strict=True):
        allowed &= (count >= bounds.lower[cluster]) & (count <= bounds.upper[cluster])
        weights -= prices[cluster] * (sizes[cluster] - count)
    return np.where(allowed, weights, -np.inf)


def _mean(probabilities: FloatArray, costs: FloatArray) -> float:
    """Expected cost in nats, infinite costs left out."""
    return float(np.sum(probabilities * np.where(np.isfinite(costs), costs, 0.0)))


def _axes(clusters: int, implied: int) -> list[tuple[int, int]]:
    """(cluster, axis of its count) of all clusters that have one."""
    counted = [cluster for cluster in range(clusters) if cluster != implied]
    return list(zip(counted, range(clusters - 1), strict=True))


def _shifted(axis: int, dimensions: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Index of count vectors that can take one client more in `axis`, and of the results."""
    before, after = [slice(None)] * dimensions, [slice(None)] * dimensions
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    return tuple(before), tuple(after)


def _strides(shape: tuple[int, ...], implied: int) -> IntArray:
    """Step of the flat index when a cluster takes a client, int64 of shape (clusters,)."""
    steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.array([*steps[:implied], 0, *steps[implied:]], dtype=np.int64)


def _log_placements(after: FloatArray, row: FloatArray, implied: int) -> FloatArray:
    """Log weight of placing a client in each cluster and completing; (clusters, *counts)."""
    log_weights = np.full((len(row), *after.shape), -np.inf)
    log_weights[implied] = after - row[implied]
    for cluster, axis in _axes(len(row), implied):
        taking, taken = _shifted(axis, after.ndim)
        log_weights[cluster][taking] = after[taken] - row[cluster]
    return log_weights


def _advance(placed: FloatArray, implied: int) -> FloatArray:
    """Probability of each count vector once a client is placed; `placed` is per cluster."""
    state: FloatArray = placed[implied].copy()
    for cluster, axis in _axes(len(placed), implied):
        taking, taken = _shifted(axis, state.ndim)
        state[taken] += placed[cluster][taking]
    return state


def _only(placed: FloatArray, cluster: int) -> FloatArray:
    selected = np.zeros_like(placed)
    selected[cluster] = placed[cluster]
    return selected
