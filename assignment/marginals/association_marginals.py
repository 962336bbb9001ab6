"""Association marginals: probabilities of client-cluster pairs over all associations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from assignment.arrays import FloatArray, IntArray, frozen, logsumexp
from assignment.costs import row_gaps
from assignment.counts import MAX_STATES, count_chain
from assignment.marginals.belief_propagation import propagate_beliefs
from assignment.marginals.gibbs import run_gibbs
from assignment.problem import ClusterSizes, Problem, make_problem

Method: TypeAlias = Literal["exact", "bp", "mcmc"]
METHODS: tuple[Method, ...] = ("exact", "bp", "mcmc")


class JointDistribution(Protocol):
    """Joint distribution of the clients' clusters."""

    def co_association(self) -> FloatArray:
        """Probability that two clients share a cluster, float64 of shape (clients, clients)."""
        ...

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """Draw associations.

        Args:
            rng: source of randomness.
            n: number of draws.

        Returns:
            int64 of shape (n, clients).

        Raises:
            ValueError: there is no joint distribution ("bp").
        """
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class AssociationMarginals:
    """Probabilities of client-cluster pairs over all feasible associations.

    Attributes:
        method: "exact", "bp" or "mcmc".
        probabilities: float64 of shape (clients, clusters), rows sum to one.
        log_partition: log of the summed weights of all associations in nats; approximate (Bethe)
            for "bp", NaN for "mcmc", which does not estimate it.
        entropy: entropy of the distribution over associations in nats, with the same exceptions.
        converged: whether the method has converged; always true for "exact".
        effective_sample_size: number of independent draws that the result is equivalent to;
            infinite for "exact", NaN for "bp".
        joint: joint distribution, for co-association and samples.
    """

    method: Method
    probabilities: FloatArray
    log_partition: float
    entropy: float
    converged: bool
    effective_sample_size: float
    joint: JointDistribution

    def co_association(self) -> FloatArray:
        """Probability that two clients share a cluster.

        Returns:
            float64 of shape (clients, clients), ones on the diagonal. Only with free cluster
            sizes is it the product of the probabilities with their transpose.
        """
        return self.joint.co_association()

    def sample(self, rng: np.random.Generator | int, n: int) -> IntArray:
        """Draw associations.

        Args:
            rng: generator or integer seed.
            n: number of draws, at least 0.

        Returns:
            int64 of shape (n, clients); for "mcmc" resampled from the chains.

        Raises:
            ValueError: n is negative, or the method is "bp", which has no joint distribution.
        """
        if n < 0:
            raise ValueError(f"n must be at least 0, got {n}")
        return self.joint.sample(np.random.default_rng(rng), n)

    def __repr__(self) -> str:
        clients, clusters = self.probabilities.shape
        return (
            f"AssociationMarginals({self.method}, {clients} clients in {clusters} clusters, "
            f"log partition {self.log_partition:.6g} nats, entropy {self.entropy:.6g} nats, "
            f"converged={self.converged})"
        )


@dataclass(frozen=True, eq=False)
class IndependentClients:
    """Independent clients, as with free cluster sizes.

    Attributes:
        probabilities: float64 of shape (clients, clusters), rows sum to one.
    """

    probabilities: FloatArray

    def co_association(self) -> FloatArray:
        """Probability that two clients share a cluster, float64 of shape (clients, clients)."""
        together: FloatArray = self.probabilities @ self.probabilities.T
        np.fill_diagonal(together, 1.0)
        return together

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """Independent draws of associations. See `JointDistribution.sample`."""
        cumulative = np.cumsum(self.probabilities, axis=1)
        draws = rng.random((n, len(cumulative), 1)) * cumulative[:, -1:]
        labels: IntArray = (cumulative <= draws).sum(axis=2, dtype=np.int64)
        return labels


def association_marginals(
    cost: npt.ArrayLike,
    lower: ClusterSizes = None,
    upper: ClusterSizes = None,
    method: Method = "exact",
    max_states: int = MAX_STATES,
    rng: np.random.Generator | int = 0,
) -> AssociationMarginals:
    """Probability of every client in every cluster, summed over all feasible associations.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.
        method: "exact": a closed form with free cluster sizes, else forward-backward over counts;
            "bp": belief propagation, good where bounds leave slack, exact with free sizes;
            "mcmc": Gibbs sampling with swaps of pairs of clients.
        max_states: budget of "exact", clients times count vectors, each 8 bytes.
        rng: generator or integer seed of "mcmc".

    Returns:
        The marginals, with diagnostics of convergence.

    Raises:
        ValueError: bad costs, bounds or method.
        InfeasibleError: no association satisfies the constraints.
        StateBudgetError: "exact" with bounds needs more than `max_states`.

    Warns:
        ForcedSizesWarning: "bp" where the bounds force the size of some cluster: its error can
            then exceed 0.4, whether or not it converges.

    Example:
        >>> import assignment
        >>> cost = [[0.0, 1.0], [0.0, 0.5], [2.0, 0.0]]
        >>> marginals = assignment.association_marginals(cost)
        >>> marginals.probabilities.round(2)
        array([[0.73, 0.27],
               [0.62, 0.38],
               [0.12, 0.88]])
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    problem = make_problem(cost, lower, upper)
    if problem.bounds is None and method != "mcmc":
        return _free(problem, method)
    if method == "exact":
        return _counted(problem, max_states)
    return _believed(problem) if method == "bp" else _sampled(problem, rng)


def _free(problem: Problem, method: Method) -> AssociationMarginals:
    minima, gaps = row_gaps(problem.cost)
    totals = logsumexp(-gaps, axis=1)
    probabilities = frozen(np.exp(-gaps - totals[:, None]))
    total = float(totals.sum())
    return AssociationMarginals(
        method=method,
        probabilities=probabilities,
        log_partition=total - float(minima.sum()),
        entropy=total + _mean_gap(probabilities, gaps),
        converged=True,
        effective_sample_size=float("inf"),
        joint=IndependentClients(probabilities),
    )


def _counted(problem: Problem, max_states: int) -> AssociationMarginals:
    minima, gaps = row_gaps(problem.cost)
    assert problem.bounds is not None
    chain = count_chain(gaps, problem.bounds, max_states)
    probabilities, entropy = chain.marginals()
    return AssociationMarginals(
        method="exact",
        probabilities=frozen(probabilities),
        log_partition=chain.log_partition_over_best - (chain.best_gap + float(minima.sum())),
        entropy=entropy,
        converged=True,
        effective_sample_size=float("inf"),
        joint=chain,
    )


def _believed(problem: Problem) -> AssociationMarginals:
    minima, gaps = row_gaps(problem.cost)
    assert problem.bounds is not None
    beliefs = propagate_beliefs(gaps, problem.bounds)
    return AssociationMarginals(
        method="bp",
        probabilities=frozen(beliefs.probabilities),
        log_partition=beliefs.log_partition_over_best - (beliefs.best_gap + float(minima.sum())),
        entropy=beliefs.entropy,
        converged=beliefs.converged,
        effective_sample_size=float("nan"),
        joint=beliefs,
    )


def _sampled(problem: Problem, rng: np.random.Generator | int) -> AssociationMarginals:
    draws = run_gibbs(problem, np.random.default_rng(rng))
    return AssociationMarginals(
        method="mcmc",
        probabilities=frozen(draws.probabilities(problem.clusters)),
        log_partition=float("nan"),
        entropy=float("nan"),
        converged=draws.converged,
        effective_sample_size=draws.effective_sample_size,
        joint=draws,
    )


def _mean_gap(probabilities: FloatArray, gaps: FloatArray) -> float:
    """Expected cost above the row minima in nats, forbidden pairs left out."""
    return float(np.sum(probabilities * np.where(np.isfinite(gaps), gaps, 0.0)))
