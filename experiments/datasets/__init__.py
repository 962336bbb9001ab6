"""Data sets by name or path, as arrays."""

from experiments.datasets.dataset import DataError, Dataset
from experiments.datasets.library import load

__all__ = ["DataError", "Dataset", "load"]
