import math

import pytest
import torch

from posteriors.predictive import (
    HeldOutSums,
    TuningGrid,
    choose,
)

GRID = TuningGrid((0.1, 1.0, 10.0, 1e4), (0.5, 1.0, 2.0))


def test_sums_of_two_data_holders_add_up():
    first = HeldOutSums(GRID, torch.arange(12.0).reshape(4, 3), 10)
    second = HeldOutSums(GRID, torch.ones(4, 3), 30)
    both = first + second
    assert both.num_samples == 40
    assert torch.equal(both.log_loss, torch.arange(1.0, 13.0).reshape(4, 3))


def test_choice_and_its_edge():
    losses = torch.tensor([[3.0, 2.5, 4.0], [9.0, math.nan, 2.0], [5.0, 5.0, 5.0], [7.0] * 3])
    tuned = choose(HeldOutSums(GRID, losses.double(), 4))
    assert (tuned.prior_precision, tuned.temperature) == (1.0, 2.0)
    assert (tuned.log_loss, tuned.on_edge) == (0.5, True)
    losses[1, 1] = 1.0
    assert not choose(HeldOutSums(GRID, losses.double(), 4)).on_edge
    only = TuningGrid((1.0,), (1.0,))
    assert not choose(HeldOutSums(only, torch.ones(1, 1).double(), 4)).on_edge


def test_a_low_precision_must_gain_what_a_parameter_costs():
    grid = TuningGrid((1.0, 10.0, 100.0), (0.5, 1.0))
    cost = math.log(50) / 2
    losses = torch.tensor([[10.0, 8.0], [12.0, 8.0 + 0.99 * cost], [30.0, 8.0 + 1.01 * cost]])
    tuned = choose(HeldOutSums(grid, losses.double(), 50))
    assert (tuned.prior_precision, tuned.temperature) == (10.0, 1.0)
    losses[1] += cost
    tuned = choose(HeldOutSums(grid, losses.double(), 50))
    assert (tuned.prior_precision, tuned.temperature) == (1.0, 1.0)
    assert tuned.log_loss == pytest.approx(8.0 / 50)


def test_a_temperature_far_from_1_must_be_worth_it():
    grid = TuningGrid((1.0,), (0.25, 1.0))
    prior = math.log(4) ** 2 / (2 * 0.5**2)  # log-normal around 1, deviation a half
    for gain, temperature in ((0.99 * prior, 1.0), (1.01 * prior, 0.25)):
        losses = torch.tensor([[20.0 - gain, 20.0]]).double()
        tuned = choose(HeldOutSums(grid, losses, 50))
        assert tuned.temperature == temperature
        assert tuned.log_loss == pytest.approx(float(losses[0, int(temperature)]) / 50)


def test_a_confident_error_is_an_infinite_loss_and_never_chosen():
    grid = TuningGrid((1.0, 2.0), (1.0,))
    sums = HeldOutSums(grid, torch.tensor([[math.inf], [-math.log(0.3)]]), 1)
    assert choose(sums).prior_precision == 2.0
    with pytest.raises(ValueError, match="log_loss must be finite at some point"):
        choose(HeldOutSums(grid, torch.full((2, 1), math.inf), 1))
    with pytest.raises(ValueError, match="num_samples must be at least 1 to tune with, got 0"):
        choose(HeldOutSums(grid, torch.zeros(2, 1), 0))


def test_bad_grids_and_data_are_named():
    for axis in ((), (0.0, 1.0), (2.0, 1.0), (1.0, math.inf)):
        with pytest.raises(ValueError, match="temperatures must be positive, finite and ascending"):
            TuningGrid(temperatures=axis)
    one, other = (HeldOutSums(grid, torch.zeros(1, 1), 1) for grid in (GRID, TuningGrid()))
    with pytest.raises(ValueError, match="grids of held-out sums must be equal"):
        one + other


def test_the_default_grid_holds_a_unit_precision_and_no_tempering():
    assert 1.0 in TuningGrid().prior_precisions
    assert 1.0 in TuningGrid().temperatures
