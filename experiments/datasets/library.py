"""Data sets by name."""

from __future__ import annotations

from experiments.datasets.dataset import DataError, Dataset


def load(name: str) -> Dataset:
    """Read a data set."""
    if name != "optdigits":
        raise DataError(f"dataset {name!r} was not found")
    return _optdigits()


def _optdigits() -> Dataset:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Dataset(
        name="optdigits",
        inputs=(bunch.images / 16).astype("float32")[:, None],
        targets=bunch.target.astype("int64"),
        num_classes=10,
        source="optical digits (UCI), 1797 images of 8x8 as shipped with scikit-learn",
    )
