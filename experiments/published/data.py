"""The data that a unit was made from, and whether they are those that are here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from experiments.datasets import Dataset

SAMPLED = 512
"""Samples whose inputs are part of a fingerprint."""
LETTERS = 16
COMPARED = ("samples", "fingerprint")
Described = Mapping[str, Any]
"""What the result of a unit says of its data."""


def described(dataset: Dataset) -> dict[str, Any]:
    """The name of a data set, its number of samples and its fingerprint.

    Args:
        dataset: as it is loaded.
    """
    return {
        "dataset": dataset.name,
        "samples": len(dataset),
        "fingerprint": fingerprint(dataset),
    }


def fingerprint(dataset: Dataset) -> str:
    """A hash that tells data of one name apart.

    It is of the shape, the classes, domains and writers of all samples in their order, the number
    of test samples, and which inputs of about 512 evenly spaced samples exceed one half. The
    inputs themselves are left out: where they are computed, as TF-IDF is, their last digits differ
    between machines.

    Args:
        dataset: as it is loaded.

    Returns:
        16 hexadecimal digits.
    """
    step = max(1, len(dataset) // SAMPLED)
    found = sha256(repr((dataset.inputs.shape, dataset.num_native_test)).encode())
    for numbers in (dataset.targets, dataset.domains, dataset.writers):
        found.update(b"-" if numbers is None else numbers.astype("<i8").tobytes())
    found.update(np.packbits(dataset.inputs[::step] > 0.5).tobytes())
    return found.hexdigest()[:LETTERS]


def are_same(first: Described, second: Described) -> bool:
    """Whether two descriptions agree in what both of them have; results of old lack fingerprints.

    Args:
        first: of a result, or of what is here.
        second: the other one.
    """
    return all(first[key] == second[key] for key in COMPARED if key in first and key in second)


def distinct(all_data: Iterable[Described]) -> list[Described]:
    """Those that differ, each as the most complete description of it has it.

    Args:
        all_data: of results; empty ones, of results that say nothing, are left out.
    """
    found: list[Described] = []
    for data in sorted(filter(None, all_data), key=len, reverse=True):
        if not any(is_alike(data, other) for other in found):
            found.append(data)
    return sorted(found, key=lambda data: (str(data.get("dataset")), _text(data)))


def is_alike(first: Described, second: Described) -> bool:
    """Whether two descriptions are of one name and may be of the same data."""
    return first.get("dataset") == second.get("dataset") and are_same(first, second)


def remark(data: Described, of_several: bool = False) -> str:
    """The name of a data set and its number of samples.

    Args:
        data: as a result describes it.
        of_several: whether there are others of its name, so that the fingerprint is told too.
    """
    name = data.get("dataset", "data")
    return f"{name} ({_text(data)})" if of_several else f"{name} ({_samples(data)})"


def _samples(data: Described) -> str:
    return f"{data['samples']:,} samples" if "samples" in data else "of unknown size"


def _text(data: Described) -> str:
    return ", ".join([_samples(data), *map(str, filter(None, [data.get("fingerprint")]))])
