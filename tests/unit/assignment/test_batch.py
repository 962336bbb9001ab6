"""Many problems in one call rank as each does alone, in numpy and by the compiled loops."""

import numpy as np
import pytest

import assignment

SOLVERS = ("hungarian", "numba")


@pytest.fixture(autouse=True)
def _loops_run_without_numba(monkeypatch):
    """The loops for numba run as plain Python where it is missing."""
    monkeypatch.setattr("assignment.ranking.one_to_one.numba_is_installed", lambda: True)


def assert_same(batch, costs, m, **bounds):
    for one, cost in enumerate(costs):
        try:
            alone = assignment.m_best_assignments(cost, m, **bounds)
        except assignment.InfeasibleError:
            assert batch.counts[one] == 0
            assert batch.best_cost[one] == np.inf
            with pytest.raises(assignment.InfeasibleError, match=rf"costs\[{one}\]"):
                batch[one]
            continue
        assert batch.counts[one] == len(alone)
        np.testing.assert_array_equal(batch[one].excess, alone.excess)
        np.testing.assert_array_equal(batch[one].labels, alone.labels)
        assert list(map(sorted, batch[one].deviations)) == list(map(sorted, alone.deviations))
        assert batch.best_cost[one] == alone.best_cost
        assert (batch.labels[one, len(alone) :] == -1).all()
        assert (batch.excess[one, len(alone) :] == np.inf).all()


def problems(kind, shape, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "ties":
        return rng.integers(0, 3, size=shape).astype(float)
    costs = rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.35, np.inf, costs) if kind == "forbidden" else costs


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["normal", "ties", "forbidden"])
@pytest.mark.parametrize("clusters", [3, 5])
@pytest.mark.parametrize("m", [1, 7, 2**70])
def test_one_to_one(solver, kind, clusters, m):
    costs = problems(kind, (12, 3, clusters))
    batch = assignment.m_best_assignments_batch(costs, m, upper=1, solver=solver)
    assert_same(batch, costs, m, upper=1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_clusters_that_must_be_filled(solver):
    costs, bounds = problems("forbidden", (20, 3, 5)), {"lower": [0, 1, 0, 0, 1], "upper": 1}
    batch = assignment.m_best_assignments_batch(costs, 9, **bounds, solver=solver)
    assert 0 < (batch.counts == 0).sum() < len(costs)
    assert_same(batch, costs, 9, **bounds)


@pytest.mark.parametrize("upper", [None, 2])
def test_other_sizes_are_solved_in_turn(upper):
    costs = problems("forbidden", (9, 3, 2))
    assert_same(assignment.m_best_assignments_batch(costs, 5, upper=upper), costs, 5, upper=upper)


@pytest.mark.parametrize("costs", [np.full((2, 2, 3), np.inf), np.zeros((2, 5, 2))])
@pytest.mark.parametrize("upper", [1, 2])
def test_no_problem_may_be_feasible(costs, upper):
    batch = assignment.m_best_assignments_batch(costs, 5, upper=upper)
    assert (batch.counts == 0).all()
    assert_same(batch, costs, 5, upper=upper)


def test_batches_are_read_only_and_listed():
    batch = assignment.m_best_assignments_batch(np.eye(2)[None].repeat(3, axis=0), 2, upper=1)
    assert [len(ranked) for ranked in batch] == [2, 2, 2]
    assert repr(batch) == "RankedBatch(3 problems, 6 associations)"
    with pytest.raises(ValueError, match="read-only"):
        batch.excess[0, 0] = 1.0


MASKED = np.ma.masked_less(np.arange(4.0).reshape(1, 2, 2), 1.0)


@pytest.mark.parametrize(
    "costs", [np.eye(3), np.empty((0, 2, 2)), np.full((1, 2, 2), np.nan), MASKED]
)
def test_costs_that_are_no_batch(costs):
    with pytest.raises(ValueError, match="cost"):
        assignment.m_best_assignments_batch(costs, 2, upper=1)
