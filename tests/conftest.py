"""All tests run with one thread, and with real data where there are any.

A folder of data sets beside the checkout, `../shared/data`, is used if `BCFL_DATA` names no other.
"""

import gc
import os
from pathlib import Path

import torch

torch.set_num_threads(1)  # their problems are too small for more

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("BCFL_DATA", str(BESIDE))


def pytest_collection_finish():
    """Leave what was collected out of garbage collection, which would walk it again and again."""
    gc.collect()
    gc.freeze()
