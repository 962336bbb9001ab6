"""Registry of partitions by the names used in scenario files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from bcfl import ClientData
from bcfl.methods import (
    UnknownObjectError,
    imported,
    keywords,
    made_by,
    misfit,
    reference_of,
    registered,
)
from bcfl.runtime import check_name
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
OWN = "a function from a data set and options to a Partition or to a sequence of ClientData"


def build(name: str, dataset: Dataset, config: Mapping[str, Any]) -> Partition:
    """Partition a data set by the name of a partition and its options.

    Args:
        name: one of `PARTITIONS`, one that a package registers, or `module:object` of a function
            from a data set, options and `seed` to a `Partition` or to clients.
        dataset: data set to partition.
        config: keyword arguments of the partition, `seed` included; lists are passed as tuples.

    Raises:
        ValueError: the name or an option is unknown (the message suggests the nearest), or a value
            is of another type or out of range.
    """
    check_name("partition", name)
    reference = reference_of(name, "partitions") if name not in PARTITIONS else None
    if reference is not None:
        return _own(name, reference, dataset, config)
    known: dict[str, Any] = {**registered("partitions"), **PARTITIONS}
    function: Callable[..., Partition] = chosen("partition", name, known)
    divide = partial(function, dataset)
    also = [option.name for option in fields(Split)]
    check_keys(f"partition {name!r}", divide, config, also)
    return divide(**config)


def _own(name: str, reference: str, dataset: Dataset, config: Mapping[str, Any]) -> Partition:
    """The partition that a function of one's own makes; it is given the seed if it takes one."""
    function = imported(reference, "partition", OWN)
    if not callable(function):
        raise misfit("partition", reference, function, OWN)
    divide = partial(function, dataset)
    accepted = keywords(function)
    options = {k: v for k, v in config.items() if k != "seed" or k in accepted}
    check_keys(f"partition {name!r}", divide, options)
    divide = partial(divide, **typed_options(options, function))
    made = made_by(reference, "partition", divide)
    if isinstance(made, Partition):
        return made
    clients = tuple(made) if isinstance(made, Iterable) else ()
    if not clients:
        raise misfit("partition", reference, made, OWN)
    for data in clients:
        if not isinstance(data, ClientData):
            kind = type(data).__name__
            raise UnknownObjectError(
                f"partition {reference!r} made a sequence with something of type {kind}, expected "
                "clients, each a ClientData"
            )
    return Partition.of_clients(name, clients, dataset)
