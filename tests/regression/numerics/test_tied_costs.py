"""Within bounds on the sizes, ties take about as many augmenting paths as distinct costs do."""

import numpy as np
import pytest

import assignment
from assignment import feasible

CLIENTS, CLUSTERS = 400, 20
LEVEL = CLIENTS // CLUSTERS


def costs_of(kind):
    random = np.random.default_rng(0)
    shape = CLIENTS, CLUSTERS
    match kind:
        case "distinct":
            return random.normal(size=shape)
        case "equal":
            return np.zeros(shape)
        case "zero or one":
            return random.integers(0, 2, size=shape).astype(float)
        case "one order, little noise":
            return np.arange(CLUSTERS) + 0.1 * random.normal(size=shape)
        case "one good cluster":
            return np.where(np.arange(CLUSTERS) == 0, 0.0, 3.0) + 0.1 * random.normal(size=shape)
    raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "distinct",
        "one good cluster",
        "equal",
        "zero or one",
        "one order, little noise",
    ],
)
def test_few_augmenting_paths(monkeypatch, kind):
    searches = []
    searched = feasible.path_levels

    def counted(graph):
        searches.append(graph)
        return searched(graph)

    monkeypatch.setattr(feasible, "path_levels", counted)
    best = assignment.best_assignment(costs_of(kind), LEVEL, LEVEL)
    assert (np.bincount(best.labels, minlength=CLUSTERS) == LEVEL).all()
    assert len(searches) <= 2 * CLUSTERS
