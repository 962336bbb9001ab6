"""Ranked client-cluster associations and their exact marginals (numpy in, numpy out)."""

from assignment.costs import InfeasibleError, validate_costs
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
    "ChildAssignment",
    "InfeasibleError",
    "RankedAssignments",
    "RankedChildren",
    "SolverName",
    "best_assignment",
    "cap",
    "effective_number",
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
