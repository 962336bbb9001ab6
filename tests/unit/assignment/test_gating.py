import numpy as np
import pytest
from numpy import inf

import assignment


def test_gate_forbids_what_is_far_from_each_clients_best():
    gated = assignment.gate([[0, 1, 5], [10, 12, 8], [3, inf, 3]], 2.0)
    np.testing.assert_array_equal(gated, [[0, 1, inf], [10, inf, 8], [3, inf, 3]])


def test_gate_keeps_every_clients_best_and_the_input():
    cost = np.array([[4.0, 4.0, 4.5]])
    np.testing.assert_array_equal(assignment.gate(cost, 0.0), [[4.0, 4.0, inf]])
    np.testing.assert_array_equal(assignment.gate(cost, inf), cost)
    assert assignment.gate(cost, inf) is not cost


def test_gate_loses_only_improbable_associations():
    cost = np.random.default_rng(0).normal(scale=4.0, size=(12, 3))
    lost = assignment.log_partition(assignment.gate(cost, 15.0)) - assignment.log_partition(cost)
    assert -12 * 2 * np.exp(-15.0) <= lost <= 0.0


@pytest.mark.parametrize("threshold", [-1.0, np.nan])
def test_bad_thresholds_are_refused(threshold):
    with pytest.raises(ValueError, match="max_excess"):
        assignment.gate([[0.0, 1.0]], threshold)
