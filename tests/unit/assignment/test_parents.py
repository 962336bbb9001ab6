import numpy as np
import pytest
from numpy import inf

import assignment


def all_parents(costs, log_weights, m, **bounds):
    """The reference: rank every parent on its own, then sort."""
    weights = [
        log_weight + assignment.m_best_assignments(cost, m, **bounds).log_weight
        for cost, log_weight in zip(costs, log_weights, strict=True)
    ]
    return np.sort(np.concatenate(weights))[::-1][:m]


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_ranking_every_parent(seed):
    rng = np.random.default_rng(seed)
    costs, log_weights = rng.normal(size=(12, 9, 3)), rng.normal(size=12)
    found = assignment.m_best_over_parents(costs, log_weights, 40)
    np.testing.assert_allclose(found.log_weight, all_parents(costs, log_weights, 40), rtol=1e-12)
    for child in found:
        cost = costs[child.parent][np.arange(9), child.labels].sum()
        assert child.log_weight == pytest.approx(log_weights[child.parent] - cost)
    pairs = {(parent, *labels) for parent, labels in zip(found.parent, found.labels, strict=True)}
    assert len(pairs) == 40


def test_parents_may_differ_in_their_clusters():
    costs = [np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[0.5], [0.5]])]
    found = assignment.m_best_over_parents(costs, [0.0, 0.5], 3)
    assert found.parent.tolist() == [0, 1, 0]
    assert found.labels.tolist() == [[0, 0], [0, 0], [1, 0]]
    np.testing.assert_allclose(found.log_weight, [0.0, -0.5, -1.0])


def test_captured_mass_counts_every_parent():
    costs, log_weights = np.zeros((2, 2, 2)), np.log([0.75, 0.25])
    found = assignment.m_best_over_parents(costs, log_weights, 2)
    assert found.parent.tolist() == [0, 0]
    assert found.log_partition == pytest.approx(np.log(4))
    assert np.exp(found.log_captured_mass) == pytest.approx(2 * 0.75 / 4)
    everything = assignment.m_best_over_parents(costs, log_weights, 100)
    assert len(everything) == 8
    assert everything.log_captured_mass == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("stack", [list, np.array], ids=["list", "array"])
def test_parents_without_weight_are_left_out(stack):
    costs = stack([[[0.0, 1.0]], [[inf, inf]], [[0.0, 0.0]]])
    found = assignment.m_best_over_parents(costs, [0.0, 5.0, -inf], 10)
    assert found.parent.tolist() == [0, 0]
    with pytest.raises(assignment.InfeasibleError, match="no parent"):
        assignment.m_best_over_parents(costs, [-inf, 5.0, -inf], 10)


def test_lazy_iteration_is_the_same_list():
    rng = np.random.default_rng(7)
    costs, log_weights = rng.normal(size=(4, 6, 3)), rng.normal(size=4)
    listed = assignment.m_best_over_parents(costs, log_weights, 10)
    for child, lazy in zip(listed, assignment.iter_over_parents(costs, log_weights), strict=False):
        assert (child.parent, child.log_weight) == (lazy.parent, lazy.log_weight)
    assert listed[0].assignment.excess == 0.0
    assert "10 of 4 parents" in repr(listed)


@pytest.mark.parametrize(
    ("costs", "weights", "message"),
    [
        ([[[0.0, 1.0]]], [0.0, 1.0], "parent_log_weights"),
        ([], [], "parent_log_weights"),
        ([[[0.0, 1.0]]], [np.nan], "parent_log_weights"),
        ([[[0.0, 1.0]], [[0.0, np.nan]]], [0.0, 0.0], r"costs\[1\]"),
        (np.array([[[0.0, np.nan]], [[inf, inf]]]), [0.0, 0.0], "NaN"),
        ([[[0.0]], [[0.0], [1.0]]], [0.0, 0.0], "share their clients"),
    ],
)
def test_bad_parents_are_refused(costs, weights, message):
    with pytest.raises(ValueError, match=message):
        assignment.m_best_over_parents(costs, weights, 2)
