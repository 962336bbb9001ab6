"""Data sets by name or path, as arrays."""

from experiments.datasets.dataset import DataError, Dataset
from experiments.datasets.catalogue import DatasetInfo, available, load

__all__ = ["DataError", "Dataset", "DatasetInfo", "available", "load"]
