"""Arguments at the edge of what is allowed do what they say, or are refused by their name."""

import numpy as np
import pytest

import assignment
from bcfl import Federation

COSTS = np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 9.0], [4.0, 0.0, 5.0]])


def refusal(call):
    """The message with which a call is refused."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return "nothing was refused"


def test_as_many_associations_as_one_likes():
    ranked = assignment.m_best_assignments(COSTS, 2**70)
    assert len(ranked.cost) == 27


def test_largest_unsigned_bound_is_no_bound():
    upper = np.full(3, 2**64 - 1, dtype=np.uint64)
    bounded = assignment.m_best_assignments(COSTS, 27, None, upper)
    np.testing.assert_array_equal(bounded.cost, assignment.m_best_assignments(COSTS, 27).cost)


def test_number_of_hypotheses_is_whole():
    with pytest.raises(ValueError, match="m must"):
        assignment.cap([0.0, 1.0], 1.5)


def test_masked_pairs_are_forbidden_or_refused():
    masked = np.ma.masked_array(COSTS, mask=COSTS > 4)
    forbidden = np.where(COSTS > 4, np.inf, COSTS)
    try:
        ranked = assignment.m_best_assignments(masked, 27)
    except ValueError:
        return
    right = assignment.m_best_assignments(forbidden, 27)
    np.testing.assert_array_equal(ranked.cost, right.cost)


@pytest.mark.skipif(
    np.finfo(np.longdouble).max <= np.finfo(float).max, reason="longdouble is float64 here"
)
def test_costs_beyond_float64():
    with pytest.raises(ValueError, match="cost"):
        assignment.m_best_assignments(np.array([[np.longdouble("1e400"), 0]]), 2)


def test_temperature_so_small_that_no_weight_is_left(make_clients, model, build_method):
    def run():
        recipe = build_method("bcfl-mh-2", num_clusters=2, temperature=1e-300)
        return Federation(make_clients(4), model, recipe, seed=0).run(1)

    assert "temperature" in refusal(run)


@pytest.mark.parametrize("inputs", [np.full((2, 6), np.nan), np.full((2, 6), np.inf)])
def test_inputs_that_cannot_be_predicted(make_clients, model, build_method, inputs):
    run = Federation(make_clients(4), model, build_method("bcfl-g", num_clusters=2), seed=0).run(1)
    assert "inputs" in refusal(lambda: run.predict("c000", inputs))


def test_rows_sum_to_one_unless_a_client_was_never_seen(make_clients, model, build_method):
    """Once expected of all rows; but of a client never seen nothing is known: zero."""
    recipe = build_method("bcfl-mht-2", num_clusters=2)
    run = Federation(make_clients(8), model, recipe, seed=0, client_fraction=0.25).run(1)
    seen = run.hypotheses.best.association.labels >= 0
    assert 0 < seen.sum() < 8
    rows = run.association_probabilities().sum(axis=1)
    np.testing.assert_allclose(rows, seen.astype(float), rtol=1e-12)
    assert "never seen" in type(run).association_probabilities.__doc__


def check_sizes(association):
    """Bounds of 2 and 4 clients, with room for those that were never seen."""
    unseen = int((association.labels < 0).sum())
    assert association.sizes.max() <= 4
    assert np.maximum(2 - association.sizes, 0).sum() <= unseen


@pytest.mark.parametrize("seed", range(3))
def test_sizes_stay_within_bounds(make_clients, model, build_method, seed):
    recipe = build_method("bcfl-g", num_clusters=3, cluster_size=(2, 4), local_steps=2)
    federation = Federation(make_clients(9), model, recipe, seed=seed, client_fraction=0.3)
    check_sizes(federation.run(4).hypotheses.best.association)


@pytest.mark.parametrize("name", ["bcfl-g-cam", "ifca-cam", "fesem-cam"])
def test_sizes_are_within_bounds_after_a_warm_up(make_clients, model, build_method, name):
    recipe = build_method(name, num_clusters=3, cluster_size=(2, 4), local_steps=2, warm_up=3)
    federation = Federation(make_clients(9), model, recipe, seed=1, client_fraction=0.3)
    check_sizes(federation.run(4).hypotheses.best.association)
