"""Names of training, validation and test samples, and where samples of validation go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sized
from typing import TypeVar

TRAINING = ("train", "training")
VALIDATION = ("validation", "valid", "val", "dev")
TEST = ("test", "testing")
PARTS = {"training": TRAINING, "validation": VALIDATION, "test": TEST}
"""Names that each part may have: of folders, of arrays after `x_` and `y_`, of splits."""

Samples = TypeVar("Samples")


def names_of_parts(there: Collection[str]) -> dict[str, str]:
    """The first name of each part that is there, by part.

    Args:
        there: names of parts, and others.
    """
    found = {part: [name for name in names if name in there] for part, names in PARTS.items()}
    return {part: names[0] for part, names in found.items() if names}


def with_test(parts: Mapping[str, Samples]) -> dict[str, Samples]:
    """The same parts, of which `validation` is `test` where there is no other.

    Beside a test set, samples of validation are training samples, as those of MedMNIST are; see
    `experiments.datasets.dataset.of_parts`. Without any sample, `validation` is left out.

    Args:
        parts: samples of `training`, and perhaps of `validation` and `test`, as folders, splits, or
            pairs of inputs and labels.

    Returns:
        The parts in this order.
    """
    found = dict(parts)
    if "validation" in found and _is_empty(found["validation"]):
        del found["validation"]
    if "test" not in found and "validation" in found:
        found["test"] = found.pop("validation")
    return {part: found[part] for part in PARTS if part in found}


def _is_empty(samples: object) -> bool:
    """Whether a split, or inputs and labels alike, are known to hold no sample."""
    arrays = samples if isinstance(samples, tuple) else (samples,)
    return all(isinstance(array, Sized) and not len(array) for array in arrays)
