"""Ranked client-cluster associations and their exact marginals (numpy in, numpy out)."""

from assignment.belief_propagation import ForcedSizesWarning
from assignment.costs import InfeasibleError, validate_costs
from assignment.counts import StateBudgetError
from assignment.gate import gate
from assignment.marginals import AssociationMarginals, association_marginals
from assignment.parents import (
    ChildAssignment,
    RankedChildren,
    iter_over_parents,
    m_best_over_parents,
)
from assignment.partition import log_partition
from assignment.ranked import Assignment, RankedAssignments
from assignment.solvers import (
    SOLVERS,
    SolverName,
    best_assignment,
    iter_assignments,
    m_best_assignments,
)
from assignment.weights import cap, effective_number, log_captured_mass, normalise, prune

__all__ = [
    "SOLVERS",
    "Assignment",
    "AssociationMarginals",
    "ChildAssignment",
    "ForcedSizesWarning",
    "InfeasibleError",
    "RankedAssignments",
    "RankedChildren",
    "SolverName",
    "StateBudgetError",
    "association_marginals",
    "best_assignment",
    "cap",
    "effective_number",
    "gate",
    "iter_assignments",
    "iter_over_parents",
    "log_captured_mass",
    "log_partition",
    "m_best_assignments",
    "m_best_over_parents",
    "normalise",
    "prune",
    "validate_costs",
]
