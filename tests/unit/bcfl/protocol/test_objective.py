"""Objectives say what is wrong with their numbers, and what they report."""

from dataclasses import replace

import numpy as np
import pytest

from bcfl import Objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1, got 0"),
        ({"local_steps": 2.5}, "local_steps must be a whole number of at least 1, got 2.5"),
        ({"local_epochs": 0}, "local_epochs must be positive and finite, or None, got 0"),
        ({"batch_size": -1}, "batch_size must be a whole number of at least 1, got -1"),
        ({"learning_rate": -0.1}, "learning_rate must be finite and at least 0, got -0.1"),
        ({"momentum": float("nan")}, "momentum must be at least 0 and below 1, got nan"),
        ({"weight_decay": float("inf")}, "weight_decay must be finite and at least 0, got inf"),
        ({"prior_weight": -1}, "prior_weight must be finite and at least 0, got -1"),
        (
            {"curvature": "fisher"},
            "curvature must be one of samples, uniform, ggn, .* got 'fisher'",
        ),
        (
            {"curvature_samples": 0},
            "curvature_samples must be a whole number of at least 1 or None, got 0",
        ),
        ({"against": "end"}, "against must be 'start' or 'updated', got 'end'"),
    ],
)
def test_numbers_out_of_range_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Objective(**change)


@pytest.mark.parametrize(
    ("epochs", "samples", "steps"),
    [(3, 320, 30), (3, 321, 31), (0.5, 64, 1), (2, 7, 2), (0.1, 7, 1), (3, 2446, 230)],
)
def test_epochs_are_steps_that_see_every_sample(epochs, samples, steps):
    objective = Objective(local_epochs=epochs, batch_size=32)
    assert objective.steps(samples) == steps
    assert objective.longer(2).steps(samples) == Objective(local_epochs=2 * epochs).steps(samples)
    assert Objective(local_steps=4).steps(samples) == 4
    assert Objective(local_steps=4).longer(3).steps(samples) == 12


def test_numpy_numbers_are_numbers():
    assert Objective(local_steps=np.int64(3), batch_size=np.int32(2)).local_steps == 3


@pytest.mark.parametrize(
    ("curvature", "vector"),
    [("samples", 0), ("uniform", 0), ("ggn", 1), ("mc_ggn", 1), ("empirical_fisher", 1)],
)
def test_what_is_reported_is_a_number_or_one_for_each_parameter(curvature, vector):
    assert Objective(curvature=curvature).reports_precision == bool(vector)


def test_blocks_in_no_phase_stay_as_they_were_sent():
    objective = Objective()
    assert objective.trains("anything")
    some = replace(objective, phases=(("own",), ("shared", "head")))
    assert [some.trains(name) for name in ("own", "head", "body")] == [True, True, False]


def test_equal_objectives_are_one_request():
    """Hypotheses share trainings by equality, so objectives must be hashable values."""
    assert len({Objective(), Objective(), Objective(local_steps=9)}) == 2
