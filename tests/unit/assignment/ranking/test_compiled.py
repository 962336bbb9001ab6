"""The loops for numba, run as plain Python where it is missing, rank as the vectorised search."""

from itertools import islice

import numpy as np
import pytest

import assignment
from assignment.problem import make_problem
from assignment.ranking.compiled import compiled_steps
from assignment.ranking.one_to_one import ascending, hungarian_search
from assignment.ranking.one_to_one_table import make_table

KINDS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "ties": lambda rng, shape: rng.integers(0, 3, size=shape).astype(float),
    "zeros": lambda rng, shape: np.zeros(shape),
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-306,
    "forbidden": lambda rng, shape: np.where(rng.random(shape) < 0.2, np.inf, rng.random(shape)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_both_rank_alike_to_the_bit(kind, seed):
    rng = np.random.default_rng([seed, len(kind)])
    clients = int(rng.integers(1, 6))
    shape = clients, clients + int(rng.integers(0, 4))
    cost = KINDS[kind](rng, shape)
    lower = (rng.random(shape[1]) < 0.2).astype(int)
    try:
        problem = make_problem(cost, lower, 1)
        search = hungarian_search(problem)
    except ValueError:
        return
    ours = list(islice(compiled_steps(make_table(problem)), 200))
    assert ours == list(islice(search.steps, 200))


def test_a_larger_problem_with_ties():
    cost = np.random.default_rng(0).integers(0, 4, size=(12, 15)).astype(float)
    problem = make_problem(cost, None, 1)
    ours = list(islice(compiled_steps(make_table(problem)), 40))
    assert ours == list(islice(hungarian_search(problem).steps, 40))


def test_without_numba_the_solver_says_what_to_install(monkeypatch):
    monkeypatch.setattr("assignment.ranking.one_to_one.numba_is_installed", lambda: False)
    with pytest.raises(ValueError, match=r"solver numba needs .*bcfl\[compiled\]"):
        assignment.m_best_assignments(np.eye(3), 2, upper=1, solver="numba")


@pytest.mark.parametrize("rank", [ascending, compiled_steps])
def test_rounding_of_near_ties_never_makes_excess_fall(rank):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        cost = rng.integers(0, 3, size=(3, 7)) + 1e-13 * rng.normal(size=(3, 7))
        steps = islice(rank(make_table(make_problem(cost, None, 1))), 250)
        excess = [step[0] for step in steps]
        assert excess == sorted(excess)
