"""Divisions of a data set among clients, by name."""

from experiments.partitions.catalogue import PARTITIONS, build
from experiments.partitions.class_sets import cluster_n_class, n_class
from experiments.partitions.feature_skew import iid, rotated
from experiments.partitions.label_skew import dirichlet, two_stage_dirichlet
from experiments.partitions.partition import Partition, Split, SplitOptions

__all__ = [
    "PARTITIONS",
    "Partition",
    "Split",
    "SplitOptions",
    "build",
    "cluster_n_class",
    "dirichlet",
    "iid",
    "n_class",
    "rotated",
    "two_stage_dirichlet",
]
