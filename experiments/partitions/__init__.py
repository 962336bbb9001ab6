"""Partitions of a data set among clients, by name: label skew, feature skew, streams.

Reading data sets is the task of `experiments.datasets`.
"""

from experiments.partitions.catalogue import PARTITIONS, build
from experiments.partitions.class_sets import cluster_n_class, n_class
from experiments.partitions.feature_skew import by_domain, iid, rotated, skewed_sizes
from experiments.partitions.label_skew import dirichlet, label_proportions, two_stage_dirichlet
from experiments.partitions.ocfl import ocfl, shared_ocfl
from experiments.partitions.partition import (
    Partition,
    Split,
    SplitOptions,
    classes_with_samples,
    occurrences,
)
from experiments.partitions.stream import stream
from experiments.partitions.two_concepts import (
    label_halves,
    merged_classes,
    noisy,
    shifted_labels,
)
from experiments.partitions.writers import writers

__all__ = [
    "PARTITIONS",
    "Partition",
    "Split",
    "SplitOptions",
    "build",
    "by_domain",
    "classes_with_samples",
    "cluster_n_class",
    "dirichlet",
    "iid",
    "label_halves",
    "label_proportions",
    "merged_classes",
    "n_class",
    "noisy",
    "occurrences",
    "ocfl",
    "rotated",
    "shared_ocfl",
    "shifted_labels",
    "skewed_sizes",
    "stream",
    "two_stage_dirichlet",
    "writers",
]
