import math

import numpy as np
import pytest

from posteriors.evidence.temperature import choose_temperature, mixture_log_loss

GRID = (0.5, 1.0, 4.0, 100.0)


def test_losses_by_brute_force():
    random = np.random.default_rng(0)
    losses, held_out = random.uniform(0, 9, size=3), -random.uniform(0, 3, size=(5, 3))
    actual = mixture_log_loss(losses, held_out, GRID)
    for temperature, value in zip(GRID, actual, strict=True):
        weights = np.exp(-losses / temperature)
        mixed = np.exp(held_out) @ (weights / weights.sum())
        assert value == pytest.approx(-np.log(mixed).sum())


def test_far_losses_do_not_overflow():
    actual = mixture_log_loss([1e6, 1e6 + 3.0, math.inf], [[-1.0, -2.0, -9.0]], (1.0, 1e9))
    weights = np.array([1, np.exp(-3)]) / (1 + np.exp(-3))
    assert actual[0] == pytest.approx(-np.log(weights @ np.exp([-1.0, -2.0])))


def test_misleading_training_losses_select_a_high_temperature():
    """The model of least training loss is the worst on held-out samples."""
    held_out = [[-3.0, -0.1]] * 10
    tuned = choose_temperature(mixture_log_loss([10.0, 12.0], held_out, GRID), GRID)
    assert (tuned.temperature, tuned.on_edge) == (100.0, True)
    honest = choose_temperature(mixture_log_loss([12.0, 10.0], held_out, GRID), GRID)
    assert honest.temperature == 0.5


def test_choice():
    tuned = choose_temperature([3.0, 1.0, math.nan, 1.0], GRID)
    assert (tuned.temperature, tuned.log_loss, tuned.on_edge) == (1.0, 1.0, False)


@pytest.mark.parametrize(
    ("losses", "held_out", "temperatures", "message"),
    [
        ([1.0, 2.0], [[0.0]], (1.0,), r"got \(2,\) and \(1, 1\)"),
        ([1.0, math.nan], [[0.0, 0.0]], (1.0,), "losses_sum must hold numbers"),
        ([math.inf, math.inf], [[0.0, 0.0]], (1.0,), r"or only \+inf"),
        ([1.0, 2.0], [[0.0, 0.0]], (0.0,), "temperatures must be positive"),
    ],
)
def test_bad_arguments_are_named(losses, held_out, temperatures, message):
    with pytest.raises(ValueError, match=message):
        mixture_log_loss(losses, held_out, temperatures)


def test_bad_choices_are_named():
    with pytest.raises(ValueError, match="one number per temperature"):
        choose_temperature([1.0], GRID)
    with pytest.raises(ValueError, match="must be finite for some temperature"):
        choose_temperature([math.inf] * 4, GRID)
