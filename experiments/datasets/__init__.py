"""Labelled data sets by name or path, as NumPy arrays.

Partitions among clients are in `experiments.partitions`.
"""

from experiments.datasets.catalogue import DatasetInfo, available, load
from experiments.datasets.dataset import DataError, Dataset, joined

__all__ = ["DataError", "Dataset", "DatasetInfo", "available", "joined", "load"]
