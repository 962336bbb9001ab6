"""Labelled data sets by name or path, as NumPy arrays.

Nothing is ever downloaded. Partitions among clients are in `experiments.partitions`.
"""

from bcfl.runtime import DataWarning
from experiments.datasets.catalogue import DatasetInfo, available, load, located
from experiments.datasets.conversions import from_huggingface, from_numpy, from_torch
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.folders import from_folder
from experiments.datasets.joining import joined

__all__ = [
    "DataError",
    "DataWarning",
    "Dataset",
    "DatasetInfo",
    "available",
    "from_folder",
    "from_huggingface",
    "from_numpy",
    "from_torch",
    "joined",
    "load",
    "located",
]
