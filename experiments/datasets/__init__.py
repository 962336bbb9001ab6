"""Data sets by name or path, as arrays."""

from experiments.datasets.catalogue import DatasetInfo, available, load
from experiments.datasets.dataset import DataError, Dataset

__all__ = ["DataError", "Dataset", "DatasetInfo", "available", "load"]
