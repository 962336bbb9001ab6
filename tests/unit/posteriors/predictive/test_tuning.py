import math

import pytest
import torch
from sklearn.metrics import log_loss
from torch import nn

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local import DiagonalLaplace, KroneckerLaplace, Variational
from posteriors.networks.functional import flat_parameters
from posteriors.predictive import (
    HeldOutSums,
    PlugIn,
    TuningGrid,
    choose,
    held_out_sums,
    temper,
)

GRID = TuningGrid((0.1, 1.0, 10.0, 1e4), (0.5, 1.0, 2.0))


@pytest.fixture
def problem():
    """A network fitted to noisy labels, and held-out data."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(80, 3, generator=generator)
    noise = torch.randn(80, generator=generator)
    classes = (inputs[:, 0] + noise > 0).long() + (inputs[:, 1] > 1).long()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))
    optimiser = torch.optim.Adam(network.parameters(), 0.05)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs[:40]), classes[:40]).backward()
        optimiser.step()
    return network, inputs, classes


def prior_of(network):
    return DiagonalGaussian.isotropic(torch.zeros_like(flat_parameters(network)), 1.0)


@pytest.mark.parametrize(
    "method", [DiagonalLaplace(), KroneckerLaplace(), Variational(steps=20, evidence_draws=2)]
)
def test_sums_are_the_log_losses_of_every_choice(problem, method):
    network, inputs, classes = problem
    fit = method.fit(network, inputs[:40], classes[:40], prior_of(network))
    held_out = inputs[40:].to(next(fit.predictive.module.parameters()).dtype), classes[40:]
    sums = held_out_sums(fit.under_prior_precision, *held_out, GRID)
    assert sums.num_samples == 40
    for i, precision in enumerate(GRID.prior_precisions):
        p = fit.under_prior_precision(precision).probabilities(held_out[0])
        for j, temperature in enumerate(GRID.temperatures):
            expected = log_loss(
                held_out[1], temper(p, temperature), normalize=False, labels=[0, 1, 2]
            )
            assert float(sums.log_loss[i, j]) == pytest.approx(expected, rel=1e-6)


def test_sums_of_two_data_holders_are_the_sums_of_both(problem):
    network, inputs, classes = problem
    fit = DiagonalLaplace().fit(network, inputs[:40], classes[:40], prior_of(network))
    parts = [
        held_out_sums(fit.under_prior_precision, inputs[part], classes[part], GRID)
        for part in (slice(40, 50), slice(50, 80))
    ]
    whole = held_out_sums(fit.under_prior_precision, inputs[40:], classes[40:], GRID)
    together = parts[0] + parts[1]
    assert together.num_samples == whole.num_samples == 40
    torch.testing.assert_close(together.log_loss, whole.log_loss)
    assert choose(together).prior_precision == choose(whole).prior_precision


def test_tuned_beats_unit_precision_and_plug_in_on_overfitted_data(problem):
    network, inputs, classes = problem
    fit = DiagonalLaplace().fit(network, inputs[:40], classes[:40], prior_of(network))
    tuned = choose(held_out_sums(fit.under_prior_precision, inputs[40:], classes[40:], GRID))
    losses = [
        float(nn.functional.nll_loss(p.log(), classes[40:]))
        for p in (
            PlugIn(network, flat_parameters(network)).probabilities(inputs[40:]),
            fit.under_prior_precision(1.0).probabilities(inputs[40:]),
        )
    ]
    assert tuned.log_loss < min(losses)


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
    class Sure:
        def __init__(self, p):
            self.p = p

        def probabilities(self, inputs):
            return torch.tensor([[self.p, 1 - self.p]], dtype=torch.float64)

    grid = TuningGrid((1.0, 2.0), (1.0,))
    sums = held_out_sums(
        lambda tau: Sure(0.0 if tau == 1 else 0.3), torch.zeros(1, 1), torch.tensor([0]), grid
    )
    assert float(sums.log_loss[0, 0]) == math.inf
    assert choose(sums).prior_precision == 2.0
    with pytest.raises(ValueError, match="log_loss must be finite at some point"):
        choose(HeldOutSums(grid, torch.full((2, 1), math.inf), 1))
    with pytest.raises(ValueError, match="num_samples must be at least 1 to tune with, got 0"):
        choose(HeldOutSums(grid, torch.zeros(2, 1), 0))


def test_bad_grids_and_data_are_named():
    for axis in ((), (0.0, 1.0), (2.0, 1.0), (1.0, math.inf)):
        with pytest.raises(ValueError, match="temperatures must be positive, finite and ascending"):
            TuningGrid(temperatures=axis)
    with pytest.raises(ValueError, match="same number of samples, at least one"):
        held_out_sums(lambda tau: None, torch.zeros(0, 2), torch.zeros(0).long(), GRID)
    one, other = (HeldOutSums(grid, torch.zeros(1, 1), 1) for grid in (GRID, TuningGrid()))
    with pytest.raises(ValueError, match="grids of held-out sums must be equal"):
        one + other


def test_the_default_grid_holds_a_unit_precision_and_no_tempering():
    assert 1.0 in TuningGrid().prior_precisions
    assert 1.0 in TuningGrid().temperatures
