"""Association marginals within bounds on cluster sizes, by loopy belief propagation.

Every cluster is a factor over the binary memberships of all clients that depends on their number
alone (cardinality potentials; Tarlow et al., 2012), so its messages come from counting independent
memberships. The graph has loops: the result is approximate, and poor where sizes are forced. Bounds
enter as stated, since their mutual implications would be counted twice.

Costs are taken above those of the best association under dual prices on the clusters, and size
factors hold the prices of other sizes, which leaves the distribution as it is. Messages are then a
few nats, however much bounds force a client to pay.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy

from assignment.arrays import FloatArray, IntArray, logsumexp
from assignment.feasible import best_labels
from assignment.problem import Bounds
from assignment.residual import cluster_prices, reduced_costs

DAMPING = 0.5
"""Share of the old message in a damped update."""

MAX_ITERATIONS = 500
TOLERANCE = 1e-10
"""Largest change of any message at convergence, in nats."""


class ForcedSizesWarning(RuntimeWarning):
    """Belief propagation was requested where bounds force the size of some cluster."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Beliefs:
    """Result of belief propagation.

    Attributes:
        probabilities: float64 of shape (clients, clusters), rows sum to one.
        log_partition_over_best: Bethe approximation in nats, above the best association.
        best_gap: cost of the best association above the row minima in nats.
        entropy: of the distribution over associations in nats, by the same approximation.
        converged: whether the messages stopped changing.
        log_odds: each client's log odds of membership without the cluster's size factor, in nats,
            float64 of shape (clients, clusters).
        size_weights: log weight of every size of every cluster in nats, -inf where not allowed,
            float64 of shape (clusters, sizes).
    """

    probabilities: FloatArray
    log_partition_over_best: float
    best_gap: float
    entropy: float
    converged: bool
    log_odds: FloatArray
    size_weights: FloatArray

    def co_association(self) -> FloatArray:
        """Probability that two clients share a cluster, float64 of shape (clients, clients).

        Approximate: from each size factor with one client fixed as a member.
        """
        clients, clusters = self.probabilities.shape
        together = np.zeros((clients, clients))
        for cluster in range(clusters):
            given = np.repeat(self.log_odds[:, cluster][:, None], clients, axis=1)
            np.fill_diagonal(given, np.inf)
            weights = np.repeat(self.size_weights[cluster : cluster + 1], clients, axis=0)
            ratios, _ = size_messages(given, weights)
            np.fill_diagonal(ratios, 0.0)
            mass = self.probabilities[:, cluster]
            with np.errstate(invalid="ignore"):
                together += np.where(mass > 0, scipy.special.expit(given + ratios), 0.0) * mass
        together = (together + together.T) / 2.0
        np.fill_diagonal(together, 1.0)
        return together

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """Not available for beliefs of single clients. See `JointDistribution.sample`."""
        raise ValueError("method 'bp' has no joint distribution to sample; use 'exact' or 'mcmc'")


def propagate_beliefs(gaps: FloatArray, bounds: Bounds) -> Beliefs:
    """Approximate marginals within bounds on cluster sizes.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: bounds on cluster sizes.

    Returns:
        The beliefs at convergence, or after `MAX_ITERATIONS`.

    Raises:
        InfeasibleError: no association is feasible.

    Warns:
        ForcedSizesWarning: the bounds force the size of some cluster.
    """
    if bounds.forced:
        warnings.warn(
            "cluster sizes are forced: belief propagation can be off by more than 0.4; "
            "use method 'exact' or 'mcmc'",
            ForcedSizesWarning,
            stacklevel=4,
        )
    labels = best_labels(gaps, bounds)
    prices = cluster_prices(gaps, labels, bounds)
    costs = reduced_costs(gaps, labels, prices)
    weights = _size_weights(labels, prices, bounds)
    messages, converged = np.zeros_like(costs), False
    for _ in range(MAX_ITERATIONS):
        odds = _log_odds(costs, messages)
        fresh, _ = size_messages(odds, weights)
        converged = np.allclose(fresh, messages, rtol=0.0, atol=TOLERANCE)
        if converged:
            break
        messages = _damped(messages, fresh)
    odds = _log_odds(costs, messages)
    bethe = _bethe_log_partition(costs, messages, odds, weights)
    probabilities = _beliefs(costs, messages)
    mean_excess = np.sum(probabilities * np.where(np.isfinite(costs), costs, 0.0))
    sizes = np.bincount(labels, minlength=len(prices))
    mean_excess += prices @ (sizes - probabilities.sum(axis=0))
    return Beliefs(
        probabilities=probabilities,
        log_partition_over_best=bethe,
        best_gap=float(gaps[np.arange(len(gaps)), labels].sum()),
        entropy=bethe + float(mean_excess),
        converged=converged,
        log_odds=odds,
        size_weights=weights,
    )


def _size_weights(best: IntArray, prices: FloatArray, bounds: Bounds) -> FloatArray:
    """Log weight of sizes by the prices of their differences from those of the best."""
    counts = np.arange(int(bounds.stated_upper.max()) + 2)
    within = (counts >= bounds.stated_lower[:, None]) & (counts <= bounds.stated_upper[:, None])
    sizes = np.bincount(best, minlength=len(prices))
    weights = prices[:, None] * (counts - sizes[:, None])
    return np.where(within, weights, -np.inf)


def size_messages(log_odds: FloatArray, size_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Messages of the size factors: log ratios in favour of each client's membership.

    Args:
        log_odds: log odds of independent memberships in nats, shape (clients, clusters).
        size_weights: log weight of every size in nats, shape (clusters, sizes), -inf at the last.

    Returns:
        ratios: log of the mean weight of sizes given membership, less that given none, in nats,
            shape (clients, clusters).
        allowed: log of the mean weight of sizes in nats, shape (clusters,).
    """
    scaled = _scaled_messages(log_odds, size_weights)
    return _log_messages(log_odds, size_weights) if scaled is None else scaled


SMALLEST_SUM = 1e-200
"""Sums of scaled weights down to this are right to the last digit: what underflows is far below."""


def _scaled_messages(
    log_odds: FloatArray, size_weights: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """`size_messages` by weights that are scaled at each client; None where they underflow."""
    clients = len(log_odds)
    joins = scipy.special.expit(log_odds)[:, :, None]
    stays_out = scipy.special.expit(-log_odds)[:, :, None]
    highest = size_weights.max(axis=1)
    completion = np.empty((clients + 1, *size_weights.shape))
    completion[clients] = np.exp(size_weights - highest[:, None])
    so_far = np.zeros_like(completion)
    so_far[0, :, 0] = 1.0
    scales = highest.copy()
    for client in range(clients - 1, -1, -1):
        before = completion[client + 1] * stays_out[client]
        before[:, :-1] += completion[client + 1, :, 1:] * joins[client]
        largest = before.max(axis=1)
        if not largest.all():
            return None
        scales += np.log(largest)
        np.divide(before, largest[:, None], out=completion[client])
    for client in range(clients):
        after = so_far[client] * stays_out[client]
        after[:, 1:] += so_far[client, :, :-1] * joins[client]
        largest = after.max(axis=1)
        if not largest.all():
            return None
        np.divide(after, largest[:, None], out=so_far[client + 1])
    member = np.einsum("jik,jik->ji", so_far[:-1, :, :-1], completion[1:, :, 1:])
    absent = np.einsum("jik,jik->ji", so_far[:-1], completion[1:])
    whole = completion[0, :, 0]
    if min(member.min(), absent.min(), whole.min()) < SMALLEST_SUM:
        return None
    return np.log(member) - np.log(absent), np.log(whole) + scales


def _log_messages(log_odds: FloatArray, size_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`size_messages` by log weights, for any odds and bounds."""
    joins, stays_out = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
    clients = len(log_odds)
    completion = np.empty((clients + 1, *size_weights.shape))
    completion[clients] = size_weights
    for client in range(clients - 1, -1, -1):
        after = completion[client + 1]
        completion[client] = after + stays_out[client][:, None]
        joined = after[:, 1:] + joins[client][:, None]
        completion[client, :, :-1] = np.logaddexp(completion[client, :, :-1], joined)
    ratios = np.empty_like(log_odds)
    so_far = np.full(size_weights.shape, -np.inf)
    so_far[:, 0] = 0.0
    for client in range(clients):
        after = completion[client + 1]
        member = logsumexp(so_far[:, :-1] + after[:, 1:])
        with np.errstate(invalid="ignore"):
            ratios[client] = member - logsumexp(so_far + after)
        joined = so_far[:, :-1] + joins[client][:, None]
        so_far = so_far + stays_out[client][:, None]
        so_far[:, 1:] = np.logaddexp(so_far[:, 1:], joined)
    return ratios, completion[0, :, 0]


def _log_odds(gaps: FloatArray, messages: FloatArray) -> FloatArray:
    """Log odds of each membership without that cluster's own message, in nats."""
    scores = _scores(gaps, messages)
    odds = np.empty_like(scores)
    for cluster in range(scores.shape[1]):
        rest = np.delete(scores, cluster, axis=1)
        elsewhere = logsumexp(rest, axis=1) if rest.shape[1] else np.full(len(gaps), -np.inf)
        permitted = np.isfinite(gaps[:, cluster])
        odds[permitted, cluster] = -gaps[permitted, cluster] - elsewhere[permitted]
        odds[~permitted, cluster] = -np.inf
    return odds


def _scores(gaps: FloatArray, messages: FloatArray) -> FloatArray:
    """Log weight of each membership from the client's cost and the size factor, in nats."""
    return np.where(np.isfinite(gaps), messages, 0.0) - gaps


def _beliefs(gaps: FloatArray, messages: FloatArray) -> FloatArray:
    scores = _scores(gaps, messages)
    certain = np.isposinf(scores)
    scores = np.where(certain.any(axis=1, keepdims=True), np.where(certain, 0.0, -np.inf), scores)
    beliefs: FloatArray = np.exp(scores - logsumexp(scores, axis=1)[:, None])
    return beliefs


def _damped(old: FloatArray, fresh: FloatArray) -> FloatArray:
    finite = np.isfinite(fresh) & np.isfinite(old)
    return np.where(finite, DAMPING * np.where(finite, old, 0.0), 0.0) + np.where(
        finite, (1.0 - DAMPING) * np.where(finite, fresh, 0.0), fresh
    )


def _bethe_log_partition(
    gaps: FloatArray, messages: FloatArray, odds: FloatArray, size_weights: FloatArray
) -> float:
    """Bethe approximation of the log partition function in nats."""
    joining, staying_out = np.minimum(messages, 0.0), -np.maximum(messages, 0.0)
    elsewhere = np.stack(
        [np.delete(staying_out, cluster, axis=1).sum(axis=1) for cluster in range(gaps.shape[1])],
        axis=1,
    )
    choices = logsumexp(_scores(gaps, joining) + elsewhere, axis=1).sum()
    sizes = size_messages(odds, size_weights)[1].sum()
    joins, stays_out = -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)
    edges = np.logaddexp(joins + joining, stays_out + staying_out).sum()
    return float(choices + sizes - edges)
