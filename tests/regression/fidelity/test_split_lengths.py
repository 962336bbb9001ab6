"""Recursive bipartition compares lengths of updates with the absolute bounds of the paper.

"One-shot clustering for federated learning", section IV: both bounds are 0.35.
"""

import numpy as np
import pytest


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_bounds_are_absolute(build_method, scale):
    """Five updates in two opposed groups, of which only the lengths change with the scale."""
    updates = scale * np.array([[0.6, 0.1], [0.6, 0.0], [0.5, 0.1], [-0.4, 0.2], [-0.4, 0.1]])
    mean = np.linalg.norm(updates.mean(axis=0))
    longest = np.linalg.norm(updates, axis=1).max()
    policy = build_method("scl").policy
    outcomes = [
        policy.splits(updates @ updates.T, first) for first in (longest, 2 * longest, 10 * longest)
    ]
    assert outcomes == [bool(mean < 0.35 < longest)] * 3
