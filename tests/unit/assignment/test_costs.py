import numpy as np
import pytest
from numpy import inf, nan

import assignment


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ([[0.0, nan]], r"NaN at \(client 0, cluster 1\)"),
        ([[0.0, 1.0], [-inf, nan]], "NaN"),
        ([[0.0, 1.0], [-inf, 2.0]], r"-inf at \(client 1, cluster 0\)"),
        ([1.0, 2.0], "1 dimensions"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.zeros((0, 3)), "at least one client"),
        (np.zeros((3, 0)), "at least one client"),
        ([["a", "b"]], "real numbers"),
        ([[1j, 0]], "real numbers"),
        ([[1.0], [1.0, 2.0]], "matrix"),
        ([[1e300, 0.0]], "magnitude"),
    ],
)
def test_bad_costs_are_refused(cost, message):
    with pytest.raises(ValueError, match=message) as caught:
        assignment.validate_costs(cost)
    assert not isinstance(caught.value, assignment.InfeasibleError)


def test_rows_without_any_cluster_are_named():
    with pytest.raises(assignment.InfeasibleError, match=r"client\(s\) 0, 2"):
        assignment.validate_costs([[inf, inf], [0, 1], [inf, inf]])


def test_valid_costs_become_float64_unchanged():
    cost = assignment.validate_costs([[1, 2], [3, inf]])
    assert cost.dtype == np.float64
    np.testing.assert_array_equal(cost, [[1.0, 2.0], [3.0, inf]])
