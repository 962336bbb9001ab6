"""NumPy archives with x_train, y_train and, if there is a test set, x_test and y_test."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import DataError, Dataset

TRAIN_KEYS, TEST_KEYS = ("x_train", "y_train"), ("x_test", "y_test")


def holds_samples(path: Path) -> bool:
    """Whether a file is an archive that has training inputs and labels."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return set(TRAIN_KEYS) <= set(getattr(archive, "files", ()))
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile):
        return False


def load_npz(name: str, path: Path) -> Dataset:
    """Read an archive.

    Args:
        name: name of the data set.
        path: the `.npz` file.

    Raises:
        DataError: the file is broken, lacks an array or holds pickled objects, or the arrays can't
            be used.
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
    return Dataset.from_arrays(name, (arrays["x_train"], arrays["y_train"]), test, str(path))


def _arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in (*TRAIN_KEYS, *TEST_KEYS) if key in archive}
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} can't be read as an .npz archive of plain arrays: {error}"
        ) from error
