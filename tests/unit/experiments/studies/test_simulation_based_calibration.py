"""The study of simulation-based calibration at a reduced size, and its parts by hand."""

from dataclasses import replace

import numpy as np
import pytest

from bcfl import methods
from experiments.studies import simulation_based_calibration as study


def built(title):
    recipe, options, rounds = study.METHODS[title]
    method = methods.build(recipe, num_clusters=2, objective=study.TO_THE_MODE, **options)
    return method, rounds


def test_quantities_of_an_association():
    found = study.quantities(np.array([1, 0, 1, 1, 0]), np.array([[0.5, 2.0], [-3.0, 1.0]]))
    assert found.tolist() == [3 + 1, 3, -3.0]


def test_ties_are_broken_at_random():
    random = np.random.default_rng(0)
    draws = np.array([1.0, 2.0, 2.0, 3.0])
    ranks = {study.randomised_rank(2.0, draws, random) for _ in range(100)}
    assert ranks == {1, 2, 3}
    assert study.randomised_rank(0.0, draws, random) == 0


def test_truths_are_drawn_from_the_prior():
    method, _ = built("exact, joint evidence")
    drawn = [study.simulated(method, seed) for seed in range(40)]
    labels = np.array([one.labels for one in drawn])
    assert abs(labels.mean() - 0.5) < 0.15
    again = study.simulated(method, 3)
    np.testing.assert_array_equal(again.coefficients, drawn[3].coefficients)
    (inputs, values) = (again.clients[0].views["train"].inputs, again.clients[0].views["train"])
    assert inputs.shape == (study.SAMPLES * study.PARAMETERS, study.PARAMETERS)
    assert ((inputs != 0).sum(1) == 1).all()
    assert len(values) == len(inputs)


def test_only_the_exact_posterior_is_calibrated():
    """At full size the p-value of the associations by which bcfl-g works is below 1e-20."""
    method, rounds = built("exact, joint evidence")
    exact = study.ranks(method, range(40), rounds)
    assert all(study.uniformity(column) > 0.01 for column in exact.T)
    method, rounds = built("greedy, joint evidence")
    greedy = study.ranks(replace(method, belief_temperature=None), range(40), rounds)
    assert study.uniformity(greedy[:, 1]) < 1e-4


@pytest.mark.parametrize("title", list(study.METHODS))
def test_every_method_can_be_built(title):
    method, rounds = built(title)
    assert method.num_clusters == 2
    assert rounds >= 1


def test_a_row_counts_all_simulations():
    ranks = np.arange(100)[:, None] * np.ones(3, dtype=int)
    text = study.row("uniform", ranks)
    assert text.count("1: 10 10 10 10 10 10 10 10 10 10") == 3
