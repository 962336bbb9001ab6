"""Captions of the figures of uncertain associations."""

from types import SimpleNamespace

import numpy as np
import pytest

from bcfl.drawing import Memberships
from experiments.reports.galleries.association_gallery import association_pictures


@pytest.mark.parametrize(
    ("groups", "look"),
    [({"c0": 0}, "several clients of one true group:"), ({}, "several clients:")],
)
def test_captions_speak_of_true_groups_only_where_they_are_known(groups, look):
    rows = Memberships(("c0", "c1"), np.full((2, 2), 0.5), groups)
    run = SimpleNamespace(memberships=lambda: {"ifca": rows}, methods=())
    caption = association_pictures(run)["uncertainty"].caption
    assert f"Look for clusters that share {look}" in caption
