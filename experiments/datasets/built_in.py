"""Data sets that need no files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments.datasets.dataset import Dataset
from experiments.datasets.rendered import NAME as RENDERED
from experiments.datasets.rendered import SOURCE as RENDERED_SOURCE
from experiments.datasets.rendered import rendered_digits

OPTDIGITS = "optdigits"
OPTDIGITS_SOURCE = "optical digits of UCI as shipped with scikit-learn"


def _optdigits() -> Dataset:
    """The digits in the files of scikit-learn, read without importing it."""
    library = find_spec("sklearn")
    assert library is not None
    assert library.submodule_search_locations is not None
    (folder,) = library.submodule_search_locations
    digits = np.loadtxt(Path(folder) / "datasets/data/digits.csv.gz", delimiter=",")
    return Dataset(
        name=OPTDIGITS,
        inputs=(digits[:, :-1].reshape(-1, 1, 8, 8) / 16).astype(np.float32),
        targets=digits[:, -1].astype(np.int64),
        num_classes=10,
        source=OPTDIGITS_SOURCE,
    )


@dataclass(frozen=True)
class BuiltIn:
    """A data set that needs no files.

    Attributes:
        description: short description.
        source: where it comes from.
        load: makes it.
    """

    description: str
    source: str
    load: Callable[[], Dataset]


BUILT_IN = {
    OPTDIGITS: BuiltIn("1,797 handwritten digits, 8x8, 10 classes", OPTDIGITS_SOURCE, _optdigits),
    RENDERED: BuiltIn(
        "5,000 digits in the fonts of matplotlib, 32x32x3, 10 classes",
        RENDERED_SOURCE,
        rendered_digits,
    ),
}
