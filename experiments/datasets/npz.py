"""Loader of NumPy archives with x_train, y_train and optionally x_test, y_test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import DataError, Dataset

TRAIN_KEYS, TEST_KEYS = ("x_train", "y_train"), ("x_test", "y_test")


def holds_samples(path: Path) -> bool:
    """Whether a file is an archive with training inputs and labels."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return set(TRAIN_KEYS) <= set(getattr(archive, "files", ()))
    except Exception:  # damaged archives raise errors of a dozen kinds
        return False


def load_npz(name: str, path: Path) -> Dataset:
    """Load an archive, and the writers of its samples if NAME_train_writers.npz exists.

    That file, and NAME_test_writers.npz if there is a test set, hold one array `writer`, as in
    archives made from QMNIST.

    Args:
        name: name of the data set.
        path: the `.npz` file.

    Raises:
        DataError: the file is corrupt, lacks an array or holds pickled objects, or the arrays are
            invalid.
    """
    arrays = _arrays(path)
    missing = [key for key in TRAIN_KEYS if key not in arrays]
    if missing or len(arrays.keys() & set(TEST_KEYS)) == 1:
        missing = missing or [key for key in TEST_KEYS if key not in arrays]
        raise DataError(
            f"{path} must hold x_train and y_train, and both or neither of x_test and y_test; "
            f"it lacks {', '.join(missing)}"
        )
    test = (arrays["x_test"], arrays["y_test"]) if "x_test" in arrays else None
    train = arrays["x_train"], arrays["y_train"]
    dataset = Dataset.from_arrays(name, train, test, str(path))
    return replace(dataset, writers=_writers(path, has_test=test is not None))


def _writers(path: Path, has_test: bool) -> NDArray[np.int64] | None:
    parts = []
    for part in ("train", "test") if has_test else ("train",):
        sibling = path.with_name(f"{path.stem}_{part}_writers.npz")
        if not sibling.is_file():
            return None
        parts.append(_arrays(sibling, ("writer",)).get("writer", np.zeros(0)).astype(np.int64))
    return np.concatenate(parts)


def _arrays(
    path: Path, names: Sequence[str] = (*TRAIN_KEYS, *TEST_KEYS)
) -> dict[str, NDArray[np.generic]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in names if key in archive}
    except Exception as error:  # damaged archives raise errors of a dozen kinds
        raise DataError(
            f"{path} cannot be read as an .npz archive of plain arrays: {error!r}"
        ) from error
