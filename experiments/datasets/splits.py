"""Names of training, validation and test samples, and where samples of validation go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

TRAINING = ("train", "training")
VALIDATION = ("validation", "valid", "val", "dev")
TEST = ("test", "testing")
PARTS = {"training": TRAINING, "validation": VALIDATION, "test": TEST}
"""Names that each part may have in files, folders and data sets of other libraries."""

Samples = TypeVar("Samples")


def with_test(parts: Mapping[str, Samples]) -> dict[str, Samples]:
    """The same parts, of which `validation` is `test` where there is no other.

    Beside a test set, samples of validation are training samples, as those of MedMNIST are; see
    `experiments.datasets.dataset.of_parts`.

    Args:
        parts: samples of `training`, and perhaps of `validation` and `test`.

    Returns:
        The parts in this order.
    """
    found = dict(parts)
    if "test" not in found and "validation" in found:
        found["test"] = found.pop("validation")
    return {part: found[part] for part in PARTS if part in found}
