"""Registry of partitions by the names used in scenario files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from experiments.config.options import check_keys, chosen, typed_options
from experiments.datasets.dataset import Dataset
from experiments.partitions.class_sets import cluster_n_class, n_class
from experiments.partitions.feature_skew import by_domain, iid, rotated, skewed_sizes
from experiments.partitions.label_skew import dirichlet, label_proportions, two_stage_dirichlet
from experiments.partitions.ocfl import ocfl, shared_ocfl
from experiments.partitions.partition import Partition, Split
from experiments.partitions.stream import stream
from experiments.partitions.two_concepts import (
    label_halves,
    merged_classes,
    noisy,
    shifted_labels,
)
from experiments.partitions.writers import writers

PARTITIONS: Mapping[str, Callable[..., Partition]] = {
    "two-stage-dirichlet": two_stage_dirichlet,
    "dirichlet": dirichlet,
    "n-class": n_class,
    "cluster-n-class": cluster_n_class,
    "label-proportions": label_proportions,
    "rotated": rotated,
    "by-domain": by_domain,
    "skewed-sizes": skewed_sizes,
    "iid": iid,
    "ocfl": ocfl,
    "shared-ocfl": shared_ocfl,
    "label-halves": label_halves,
    "shifted-labels": shifted_labels,
    "noisy": noisy,
    "merged-classes": merged_classes,
    "writers": writers,
    "stream": stream,
}


def build(name: str, dataset: Dataset, config: Mapping[str, Any]) -> Partition:
    """Partition a data set by the name of a partition and its options.

    Args:
        name: one of `PARTITIONS`.
        dataset: data set to partition.
        config: keyword arguments of the partition, `seed` included; lists are passed as tuples.

    Raises:
        ValueError: the name or an option is unknown (the message suggests the nearest), or a value
            is of another type or out of range.
    """
    function = chosen("partition", name, PARTITIONS)
    divide = partial(function, dataset)
    also = [option.name for option in fields(Split)]
    check_keys(f"partition {name!r}", divide, config, also)
    return divide(**typed_options(config, function, Split))
