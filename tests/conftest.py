"""All tests run with one thread, and with real data where there are any.

A folder of data sets beside the checkout, `../shared/data`, is used if `BCFL_DATA` names no other.
"""

import gc
import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)  # their problems are too small for more

BESIDE = Path(__file__).parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("BCFL_DATA", str(BESIDE))


def pytest_collection_finish():
    """Leave what was collected out of garbage collection, which would walk it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def plain_figures(request, monkeypatch):
    """Empty figures on pages, for tests of what stands around them: drawing takes seconds.

    Figures have tests of their own, and tests that are marked by `figures` have them all the same.
    """
    if "figures" in request.keywords:
        return
    from experiments.reports import uncertainty_page
    from experiments.reports.pictures import drawing

    def empty(draw, name, title):
        return f'<svg role="img" aria-label="{title}" id="{name}"></svg>'

    for module in (drawing, uncertainty_page):
        monkeypatch.setattr(module, "inline_svg", empty)
