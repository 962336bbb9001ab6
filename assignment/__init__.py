"""Ranked client-cluster associations and their exact marginals (numpy in, numpy out).

An association assigns every client to one cluster. Its weight is exp(-cost), its cost the sum of
the clients' costs in nats, and cluster sizes may be bounded. The package finds the best
association, ranks the M best or all of them lazily, and computes the probability mass that they
capture and the marginal probability of every pair.

Three clients, two clusters: client 0 prefers cluster 0, client 1 is indifferent, client 2 prefers
cluster 1.

>>> import numpy as np
>>> import assignment
>>> cost = np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
>>> ranked = assignment.m_best_assignments(cost, m=3)
>>> ranked.labels
array([[0, 0, 1],
       [0, 1, 1],
       [1, 0, 1]])
>>> ranked.cost
array([0., 0., 1.])
>>> print(f"these three hold {np.exp(ranked.log_captured_mass):.3f} of all probability")
these three hold 0.762 of all probability

Over all eight associations, each client's clusters and whether two clients share one:

>>> marginals = assignment.association_marginals(cost)
>>> marginals.probabilities.round(3)
array([[0.731, 0.269],
       [0.5  , 0.5  ],
       [0.119, 0.881]])
>>> marginals.co_association().round(3)
array([[1.   , 0.5  , 0.324],
       [0.5  , 1.   , 0.5  ],
       [0.324, 0.5  , 1.   ]])

At most two clients to a cluster, which leaves six associations, counted exactly:

>>> assignment.m_best_assignments(cost, m=100, upper=2).cost
array([0., 0., 1., 2., 3., 3.])
>>> assignment.association_marginals(cost, upper=2).probabilities.round(3)
array([[0.82 , 0.18 ],
       [0.545, 0.455],
       [0.09 , 0.91 ]])

+inf forbids a pair; NaN and -inf are errors; where nothing is feasible, `InfeasibleError` says so.
Costs are compared by their excess over the best, which stays exact where totals are too large to
tell two associations apart.
"""

from assignment.batch import RankedBatch, m_best_assignments_batch
from assignment.costs import InfeasibleError, gate, validate_costs
from assignment.counts import StateBudgetError
from assignment.marginals.association_marginals import AssociationMarginals, association_marginals
from assignment.marginals.belief_propagation import ForcedSizesWarning
from assignment.parents import (
    ChildAssignment,
    RankedChildren,
    iter_over_parents,
    m_best_over_parents,
)
from assignment.partition import log_partition
from assignment.ranked import Assignment, RankedAssignments
from assignment.ranking.merging import merge_rankings
from assignment.solvers import (
    SOLVERS,
    SolverName,
    best_assignment,
    iter_assignments,
    m_best_assignments,
)
from assignment.weights import (
    cap,
    effective_number,
    exact_sum,
    log_captured_mass,
    normalise,
    prune,
    pseudo_bma_weights,
)

__all__ = [
    "SOLVERS",
    "Assignment",
    "AssociationMarginals",
    "ChildAssignment",
    "ForcedSizesWarning",
    "InfeasibleError",
    "RankedAssignments",
    "RankedBatch",
    "RankedChildren",
    "SolverName",
    "StateBudgetError",
    "association_marginals",
    "best_assignment",
    "cap",
    "effective_number",
    "exact_sum",
    "gate",
    "iter_assignments",
    "iter_over_parents",
    "log_captured_mass",
    "log_partition",
    "m_best_assignments",
    "m_best_assignments_batch",
    "m_best_over_parents",
    "merge_rankings",
    "normalise",
    "prune",
    "pseudo_bma_weights",
    "validate_costs",
]
