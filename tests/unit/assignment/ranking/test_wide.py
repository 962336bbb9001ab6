"""Few clients with many columns: conflicts are dropped, and all is as the partition ranks it."""

from itertools import islice

import numpy as np
import pytest

from assignment.problem import make_problem
from assignment.ranking.one_to_one import hungarian_search
from assignment.ranking.one_to_one_table import dual_prices, make_table
from assignment.ranking.wide import distinct_steps
from tests.unit.assignment.ranking.test_compiled import KINDS


def partitioned(problem, monkeypatch):
    """All associations by the partition alone."""
    with monkeypatch.context() as patch:
        patch.setattr("assignment.ranking.wide.PAIRS", 0)
        yield from islice(hungarian_search(problem).steps, 40)


def num_ranked(costs):
    """How many associations are ranked before a tie or too many conflicts."""
    table = make_table(make_problem(costs, None, 1))
    prices, order = dual_prices(table)
    return 1 + len(list(islice(distinct_steps(table, prices[[*np.argsort(order), -1]]), 39)))


@pytest.mark.parametrize("kind", [*KINDS, "alike"])
@pytest.mark.parametrize("shape", [(1, 6), (2, 3), (4, 9), (6, 40), (10, 200)])
def test_ranked_as_by_the_partition_to_the_bit(kind, shape, monkeypatch):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        costs = KINDS["normal" if kind == "alike" else kind](rng, shape)
        costs[:, 0] -= 5.0 * (kind == "alike")
        problem = make_problem(costs, None, 1)
        right = list(partitioned(problem, monkeypatch))
        assert list(islice(hungarian_search(problem).steps, 40)) == right
        assert list(islice(hungarian_search(problem, 40).steps, 40)) == right


def test_ties_and_frequent_conflicts_are_left_to_the_partition():
    rng = np.random.default_rng(0)
    assert num_ranked(rng.normal(size=(5, 60))) == 40
    assert num_ranked(rng.integers(0, 2, size=(5, 60)).astype(float)) == 1
    assert num_ranked(np.arange(60.0) + 1e-3 * rng.normal(size=(5, 60))) < 10
