"""Association marginals by Gibbs sampling, for problems beyond exact counting.

Each sweep resamples the cluster of every client, or of a random 200 of more clients, where the
bounds permit, and proposes swaps of clusters between disjoint random pairs of all clients, which
preserve all sizes; with all sizes fixed it makes several rounds of swaps. Chains start from best
associations of perturbed costs (Papandreou and Yuille, 2011), and are thus overdispersed. With
forbidden pairs some associations may not be connected by swaps. Either chains then disagree, or
none has found the others; a client that never moves therefore counts as stuck unless the best
association without its membership costs more than draws of this number would show.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from assignment.arrays import FloatArray, IntArray
from assignment.costs import row_gaps
from assignment.feasible import best_labels
from assignment.paths import path_levels
from assignment.problem import Bounds, Problem, unbounded
from assignment.residual import moves_between_clusters, residual_graph, slack_moves


def effective_sample_size(draws: FloatArray) -> float:
    """Effective sample size of autocorrelated draws, of the worst quantity.

    Chains are halved; autocorrelations are averaged over them and summed in pairs up to the first
    negative pair (Geyer, 1992; Vehtari et al., 2021, equations 10 to 13).

    Args:
        draws: floats of shape (draws, chains, quantities).

    Returns:
        Effective number of draws over all chains. Constant quantities, which say nothing of
        convergence, are left out; if all are constant, the number of draws.
    """
    draws = _halves(draws)
    steps, chains, _ = draws.shape
    within = draws.var(axis=0, ddof=1).mean(axis=0)
    between = draws.mean(axis=0).var(axis=0, ddof=1) if chains > 1 else np.zeros_like(within)
    total = within * (steps - 1) / steps + between
    varying = total > 0
    if not varying.any():
        return float(steps * chains)
    centred = draws[..., varying] - draws[..., varying].mean(axis=0)
    spectrum = scipy.fft.rfft(centred, n=2 * steps, axis=0)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    covariance = scipy.fft.irfft(power, axis=0)[:steps] / steps
    lag_one = covariance[:1] * steps / (steps - 1)
    correlation = 1.0 - (lag_one - covariance) / total[varying]
    pairs = correlation[: steps // 2 * 2].reshape(steps // 2, 2, -1).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(pairs, axis=0)
    time = np.maximum(2.0 * (positive * monotone).sum(axis=0) - 1.0, 1.0 / np.log10(steps * chains))
    return float((steps * chains / time).min())


def potential_scale_reduction(draws: FloatArray) -> float:
    """Split-chain potential scale reduction of the worst quantity (Gelman and Rubin, 1992).

    Args:
        draws: floats of shape (draws, chains, quantities).

    Returns:
        At least about 1, its value where all chains agree; infinite where chains are constant at
        different values.
    """
    split = _halves(draws)
    half = len(split)
    within = split.var(axis=0, ddof=1).mean(axis=0)
    between = split.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1) / half + between / within)
    return float(np.where(between > 0, ratio, 1.0).max())


def _halves(draws: FloatArray) -> FloatArray:
    """First and second halves of all chains as chains of their own."""
    half = len(draws) // 2
    return np.concatenate([draws[:half], draws[half : 2 * half]], axis=1)


CHAINS = 16
SWEEPS = 1000
WARM_UP = 100
SWAPS = 5
"""Rounds of swaps in a sweep if all sizes are fixed."""

RELOCATED = 200
"""Most clients that are resampled one by one in a sweep."""

MAX_STORED_LABELS = 20_000_000
"""Sweeps are thinned so that no more labels are kept, of one byte each for up to 127 clusters."""

ENOUGH_DRAWS = 400
"""Effective sample size from which a run counts as converged (Vehtari et al., 2021)."""

LARGEST_SCALE_REDUCTION = 1.01


@dataclass(frozen=True, eq=False)
class GibbsDraws:
    """Associations visited by all chains.

    Attributes:
        labels: clusters, integers of shape (sweeps, chains, clients).
        effective_sample_size: effective number of draws, of the worst membership or of the cost.
        scale_reduction: largest potential scale reduction (1: chains agree).
        stuck: whether a client never moved though so many draws should have moved it.
    """

    labels: IntArray
    effective_sample_size: float
    scale_reduction: float
    stuck: bool

    @property
    def converged(self) -> bool:
        """Whether there are enough effective draws, the chains agree, and no client is stuck."""
        return (
            not self.stuck
            and self.effective_sample_size >= ENOUGH_DRAWS
            and self.scale_reduction <= LARGEST_SCALE_REDUCTION
        )

    @property
    def pooled(self) -> IntArray:
        """All draws, integers of shape (draws, clients)."""
        return self.labels.reshape(-1, self.labels.shape[-1])

    def probabilities(self, clusters: int) -> FloatArray:
        """Share of draws that place each client in each cluster, float64 (clients, clusters)."""
        pooled = self.pooled
        return np.stack([(pooled == cluster).mean(axis=0) for cluster in range(clusters)], axis=1)

    def co_association(self) -> FloatArray:
        """Share of draws in which two clients share a cluster, float64 (clients, clients)."""
        pooled = self.pooled
        together = np.zeros((pooled.shape[1], pooled.shape[1]))
        for cluster in range(int(pooled.max()) + 1):
            member = (pooled == cluster).astype(np.float64)
            together += member.T @ member
        return together / len(pooled)

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """Draws resampled from the chains, with replacement. See `JointDistribution.sample`."""
        return self.pooled[rng.integers(len(self.pooled), size=n)].astype(np.int64)


def run_gibbs(problem: Problem, rng: np.random.Generator, sweeps: int = SWEEPS) -> GibbsDraws:
    """Sample associations within the bounds of a problem.

    Args:
        problem: costs and bounds.
        rng: source of randomness.
        sweeps: sweeps stored per chain, after `WARM_UP` sweeps that are discarded.

    Returns:
        Draws of all chains.

    Raises:
        InfeasibleError: no association is feasible.
    """
    gaps = row_gaps(problem.cost)[1]
    bounds = problem.bounds or unbounded(problem.clients, problem.clusters)
    labels = _starts(gaps, bounds, rng)
    thinning = max(1, -(-sweeps * labels.size // MAX_STORED_LABELS))
    has_slack = bool((bounds.lower < bounds.upper).any())
    stored, costs = [], []
    for sweep in range(WARM_UP + sweeps):
        if has_slack:
            _relocate(labels, gaps, bounds, rng)
        for _ in range(1 if has_slack else SWAPS):
            _swap(labels, gaps, rng)
        if sweep >= WARM_UP and (sweep - WARM_UP) % thinning == 0:
            stored.append(labels.astype(np.min_scalar_type(-problem.clusters)))
            costs.append(gaps[np.arange(len(gaps)), labels].sum(axis=1))
    history = np.stack(stored)
    quality = _quality(history, np.stack(costs), problem.clusters)
    return GibbsDraws(history, *quality, _is_stuck(history, gaps, bounds))


def _starts(gaps: FloatArray, bounds: Bounds, rng: np.random.Generator) -> IntArray:
    """Best associations of randomly perturbed costs, int64 of shape (chains, clients)."""
    best_labels(gaps, bounds)
    perturbed = (gaps - rng.gumbel(size=gaps.shape) for _ in range(CHAINS))
    return np.stack([best_labels(cost, bounds) for cost in perturbed])


def _relocate(labels: IntArray, gaps: FloatArray, bounds: Bounds, rng: np.random.Generator) -> None:
    """Resample clients, one after the other, among the clusters that may take each."""
    (chains, _), clusters = labels.shape, gaps.shape[1]
    chosen_clients = rng.permutation(len(gaps))[:RELOCATED]
    scores = rng.gumbel(size=(len(chosen_clients), chains, clusters)) - gaps[chosen_clients, None]
    moved = labels[:, chosen_clients].T
    fewest = bounds.lower[moved]
    starts = clusters * np.arange(chains)  # of the chains in sizes, which are flat
    moved += starts
    sizes = np.bincount((labels + starts[:, None]).ravel(), minlength=chains * clusters)
    upper = np.tile(bounds.upper, chains)
    for present, score, least in zip(moved, scores, fewest, strict=True):
        left = sizes[present] - 1
        sizes[present] = left
        score[(sizes >= upper).reshape(chains, clusters)] = -np.inf
        chosen = score.argmax(axis=1) + starts
        np.copyto(present, chosen, where=left >= least)
        sizes[present] += 1
    labels[:, chosen_clients] = (moved - starts).T


def _swap(labels: IntArray, gaps: FloatArray, rng: np.random.Generator) -> None:
    """Swap the clusters of disjoint random pairs of clients, each with its own probability."""
    order = rng.permuted(np.tile(np.arange(labels.shape[1]), (len(labels), 1)), axis=1)
    half = labels.shape[1] // 2
    first, second = order[:, :half], order[:, half : 2 * half]
    chains = np.arange(len(labels))[:, None]
    of_first, of_second = labels[chains, first], labels[chains, second]
    swapped = gaps[first, of_second] + gaps[second, of_first]
    extra = swapped - gaps[first, of_first] - gaps[second, of_second]
    swaps = rng.logistic(size=extra.shape) > extra
    labels[chains, first] = np.where(swaps, of_second, of_first)
    labels[chains, second] = np.where(swaps, of_first, of_second)


MAX_BLOCK = 1_000_000
"""Memberships are judged in blocks of this many draws (8 bytes each, some ten times over)."""


def _quality(history: IntArray, costs: FloatArray, clusters: int) -> tuple[float, float]:
    """Worst effective sample size and scale reduction over costs and all memberships."""
    size = effective_sample_size(costs[..., None])
    reduction = potential_scale_reduction(costs[..., None])
    at_once = max(1, MAX_BLOCK // costs.size)
    for cluster in range(clusters):
        for start in range(0, history.shape[2], at_once):
            member = (history[..., start : start + at_once] == cluster).astype(np.float32)
            size = min(size, effective_sample_size(member))
            reduction = max(reduction, potential_scale_reduction(member))
    return size, reduction


def _is_stuck(history: IntArray, gaps: FloatArray, bounds: Bounds) -> bool:
    """Whether a client never moved though leaving is not too improbable to be drawn.

    The best association that takes a client out of its cluster moves it to another one, and others
    on a shortest path back.
    """
    unmoved = (history == history[0, 0]).all(axis=(0, 1))
    labels = best_labels(gaps, bounds)
    if (history[0, 0, unmoved] != labels[unmoved]).any():
        return True
    extra = gaps - gaps[np.arange(len(gaps)), labels][:, None]
    moves = moves_between_clusters(extra, labels)
    graph = residual_graph(moves.least, *slack_moves(moves.sizes, bounds))
    back = path_levels(graph)[-1][:-1, :-1]
    leaving = extra + back.T[labels]
    leaving[np.arange(len(gaps)), labels] = np.inf
    draws = history.shape[0] * history.shape[1]
    return bool((leaving[unmoved].min(axis=1, initial=np.inf) <= np.log(draws)).any())
