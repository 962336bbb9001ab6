"""Divisions of a data set among clients, by name."""

from experiments.partitions.feature_skew import iid, rotated
from experiments.partitions.label_skew import dirichlet, two_stage_dirichlet
from experiments.partitions.partition import Partition, Split, SplitOptions

__all__ = [
    "Partition",
    "Split",
    "SplitOptions",
    "dirichlet",
    "iid",
    "rotated",
    "two_stage_dirichlet",
]
