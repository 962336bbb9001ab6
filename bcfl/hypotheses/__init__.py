"""Associations, weighted hypotheses about them, and posteriors over cluster models.

Immutable values only. How hypotheses are managed is in `bcfl.trackers`, how associations are
found in `bcfl.policies`.
"""

from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.history import (
    Proposed,
    Snapshot,
    accumulated_co_association,
    ancestor_shares,
    smoothed_associations,
)
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet, match_clusters
from bcfl.hypotheses.matching import best_matching
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.numbering import LeadingClusters, cluster_numbers, main_parent, renumbered
from bcfl.hypotheses.posterior import Block, Posterior

__all__ = [
    "UNSEEN",
    "Association",
    "Block",
    "Hypothesis",
    "HypothesisSet",
    "LeadingClusters",
    "Membership",
    "Posterior",
    "Proposed",
    "Snapshot",
    "accumulated_co_association",
    "ancestor_shares",
    "best_matching",
    "cluster_numbers",
    "main_parent",
    "match_clusters",
    "renumbered",
    "smoothed_associations",
]
