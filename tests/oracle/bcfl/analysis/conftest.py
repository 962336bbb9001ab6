"""Runs of one federation by the loop and by another executor."""

import pytest

from tests.fake_grid import grid_of, reaching


@pytest.fixture(params=["batched", "processes", "grid"])
def loop_and_other(request, federation):
    loop = federation("ifca", executor="loop")
    if request.param == "grid":
        return loop.run(3), loop.run(3, executor=reaching(grid_of(loop, 3), loop))
    return loop.run(3), federation("ifca", executor=request.param).run(3)
