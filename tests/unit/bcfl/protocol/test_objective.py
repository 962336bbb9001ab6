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
        ({"batch_size": -1}, "batch_size must be a whole number of at least 1, got -1"),
        ({"learning_rate": -0.1}, "learning_rate must be finite and at least 0, got -0.1"),
        ({"momentum": float("nan")}, "momentum must be finite and at least 0, got nan"),
        ({"weight_decay": float("inf")}, "weight_decay must be finite and at least 0, got inf"),
        ({"prior_weight": -1}, "prior_weight must be finite and at least 0, got -1"),
        (
            {"curvature": "fisher"},
            "curvature must be one of samples, uniform, ggn, .* got 'fisher'",
        ),
        ({"curvature_samples": 0}, "curvature_samples must be at least 1 or None, got 0"),
        ({"against": "end"}, "against must be 'start' or 'updated', got 'end'"),
    ],
)
def test_numbers_out_of_range_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Objective(**change)


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
