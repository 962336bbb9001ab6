"""Ranking and sums over associations in exact arithmetic, for costs of many sizes and with ties."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import assignment

FAMILIES = {
    "normal": lambda rng: rng.normal(size=(4, 3)),
    "ties": lambda rng: rng.integers(0, 3, (4, 3)).astype(float),
    "zeros": lambda rng: np.zeros((4, 3)),
    "huge": lambda rng: rng.normal(size=(4, 3)) * 1e285,
    "small": lambda rng: rng.normal(size=(4, 3)) * 1e-290,
    "one offset": lambda rng: 1e8 + rng.normal(size=(4, 3)),
    "offset of each client": lambda rng: rng.normal(size=(4, 3)) + 1e6 * rng.normal(size=(4, 1)),
    "forbidden pairs": lambda rng: np.where(rng.random((4, 3)) < 0.2, np.inf, rng.random((4, 3))),
}
BOUNDS = {"free": (None, None), "at most two": (None, 2), "forced": (np.array([1, 1, 0]), 2)}
ONE_EACH = (None, 1)


@pytest.fixture(params=list(FAMILIES))
def costs(request):
    drawn = FAMILIES[request.param](np.random.default_rng(7))
    drawn[np.isinf(drawn).all(axis=1)] = 0.0
    return drawn


def allowed(costs, lower, upper):
    """(exact cost, labels) of every association within bounds, cheapest first."""
    clients, clusters = costs.shape
    least = np.zeros(clusters) if lower is None else lower
    most = np.full(clusters, clients) if upper is None else np.full(clusters, upper)
    found = []
    for labels in itertools.product(range(clusters), repeat=clients):
        sizes, chosen = np.bincount(labels, minlength=clusters), costs[np.arange(clients), labels]
        if (sizes >= least).all() and (sizes <= most).all() and np.isfinite(chosen).all():
            found.append((sum(map(Fraction, chosen.tolist())), labels))
    return sorted(found)


@pytest.mark.parametrize("name", list(BOUNDS))
@pytest.mark.parametrize("solver", ["auto", "murty"])
def test_ranking(costs, name, solver):
    every = allowed(costs, *BOUNDS[name])
    ranked = assignment.m_best_assignments(costs, 10**6, *BOUNDS[name], solver=solver)
    assert {tuple(labels) for labels in ranked.labels.tolist()} == {labels for _, labels in every}
    right = np.array([float(cost - every[0][0]) for cost, _ in every])
    spread = np.abs(costs[np.isfinite(costs)]).max()
    np.testing.assert_allclose(ranked.excess, right, rtol=1e-12, atol=4e-16 * spread)


def test_one_client_each(costs):
    wide = costs.T
    every = allowed(wide, *ONE_EACH)
    if not every:
        pytest.skip("no association is allowed")
    ranked = assignment.m_best_assignments(wide, 10**6, *ONE_EACH)
    assert len(ranked.labels) == len(every)
    right = np.array([float(cost - every[0][0]) for cost, _ in every])
    spread = np.abs(wide[np.isfinite(wide)]).max()
    np.testing.assert_allclose(ranked.excess, right, rtol=1e-12, atol=4e-16 * spread)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_marginals_and_captured_mass(costs, name):
    every = allowed(costs, *BOUNDS[name])
    weights = np.exp([-float(cost - every[0][0]) for cost, _ in every])
    right = np.zeros(costs.shape)
    for weight, (_, labels) in zip(weights, every, strict=True):
        right[np.arange(len(costs)), labels] += weight / weights.sum()
    marginals = assignment.association_marginals(costs, *BOUNDS[name])
    np.testing.assert_allclose(marginals.probabilities, right, rtol=1e-8, atol=1e-10)
    ranked = assignment.m_best_assignments(costs, 3, *BOUNDS[name])
    captured = np.log(weights[:3].sum() / weights.sum())
    assert ranked.log_captured_mass == pytest.approx(captured, rel=1e-8, abs=1e-10)
