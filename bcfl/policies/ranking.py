"""Ranked candidates from a cost matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.policy import Candidate, Costs, Ranking, candidate
from bcfl.protocol.objective import Objective


def ranked(
    parent: Hypothesis,
    costs: Costs,
    objective: Objective,
    solver: assignment.SolverName,
    num_samples: Mapping[str, int] | None = None,
) -> Ranking:
    """The associations of a cost matrix, best first, lazily.

    Args:
        parent: hypothesis that they follow.
        costs: negative log weight of each client in each cluster, nats, and bounds on sizes.
        objective: local objective of the trainings.
        solver: ranking algorithm, see `assignment.SOLVERS`.
        num_samples: training samples of the clients, for objectives with regularisers.

    Returns:
        The ranking; of costs without clients, the association that changes nothing.

    Raises:
        ValueError: a client is not of the federation, or there is not one column for each cluster.

    Example:
        With `federation` of the example of `bcfl.Federation`:

        >>> from bcfl.policies import Costs, ranked
        >>> parent = federation.initial_state().hypotheses.best
        >>> costs = Costs(clients=("ann", "bob"), values=np.array([[0.0, 1.0], [3.0, 0.0]]))
        >>> ranking = ranked(parent, costs, bcfl.Objective(), "auto")
        >>> [each.association.by_client for each in ranking][:2]
        [{'ann': 0, 'bob': 1}, {'ann': 1, 'bob': 1}]
    """
    costs.check(parent.association, len(parent.clusters))
    if not costs.clients:
        return Ranking.only(candidate(parent, {}, objective))
    lower, upper = costs.cluster_size.left_for(costs.clients, parent.association)
    least = costs.values.min(axis=1)
    gaps = costs.values - least[:, None]

    def candidates() -> Iterator[Candidate]:
        for chosen in assignment.iter_assignments(gaps, lower, upper, solver=solver):
            labels = dict(zip(costs.clients, map(int, chosen.labels), strict=True))
            ranked_candidate = candidate(
                parent, labels, objective, log_weight=-chosen.cost, num_samples=num_samples
            )
            yield replace(ranked_candidate, costs=costs)

    reference = -(assignment.exact_sum(least) + costs.total_offset)
    return Ranking(candidates(), log_total(gaps, lower, upper), reference=reference)


def quotients(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Quotients as sums of two numbers, with twice the digits of one (Dekker, 1971).

    Args:
        numerators: shape (n,), up to 1e290 in magnitude.
        denominators: positive, one number or shape (n,).

    Returns:
        float64 of shape (n, 2).
    """
    quotient = numerators / denominators
    product = quotient * denominators
    rest = (numerators - product) - _product_error(quotient, denominators, product)
    return np.stack([quotient, rest / denominators], axis=1)


def _product_error(
    first: NDArray[np.float64], second: NDArray[np.float64] | float, product: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rounding error of a product: the exact product less the rounded one."""
    (a, b), (c, d) = _halves(first), _halves(np.asarray(second, dtype=np.float64))
    error: NDArray[np.float64] = ((a * c - product) + a * d + b * c) + b * d
    return error


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers as sums of two with half as many digits, whose products are exact."""
    mantissa, exponent = np.frexp(values)
    scaled = np.ldexp(mantissa, 26)
    high = np.ldexp(np.rint(scaled), exponent - 26)
    return high, values - high


def membership_probabilities(costs: Costs, association: Association) -> NDArray[np.float64]:
    """Exact marginals of a cost matrix: the probability of each client's cluster.

    Belief propagation where bounds on cluster sizes make exact sums too many.

    Args:
        costs: negative log weight of each client in each cluster, nats, and bounds on sizes.
        association: of all clients, before those of the rows are associated.

    Returns:
        float64 of shape (clients, clusters), rows sum to 1.
    """
    lower, upper = costs.cluster_size.left_for(costs.clients, association)
    try:
        marginals = assignment.association_marginals(costs.values, lower, upper)
    except assignment.StateBudgetError:
        marginals = assignment.association_marginals(costs.values, lower, upper, method="bp")
    return marginals.probabilities


def log_total(
    cost: NDArray[np.float64], lower: NDArray[np.int64] | None, upper: NDArray[np.int64] | None
) -> float:
    """Log of the summed weight of all associations, nats; NaN where bounds make it too costly.

    Args:
        cost: (clients, clusters) negative log weights, nats, row minima 0.
        lower: (clusters,) fewest clients per cluster; None is no bound.
        upper: (clusters,) most clients per cluster; None is no bound.
    """
    try:
        return assignment.log_partition(cost, lower, upper)
    except assignment.StateBudgetError:
        return float("nan")


def chosen_log_prior(
    log_prior: NDArray[np.float64], candidate: Candidate, clients: Sequence[str]
) -> float:
    """Log prior of a candidate's association, nats.

    Args:
        log_prior: (clients, clusters) log probabilities.
        candidate: the association.
        clients: names of the rows.
    """
    labels = [candidate.association.label(client) for client in clients]
    return float(log_prior[np.arange(len(clients)), labels].sum())
