"""Temperatures and likelihoods of very confident networks, whose lesser probabilities round to 0.

Reported to neighbouring projects: the temperature that is fitted to such logits is far off.
"""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Model, PredictionRule
from bcfl.data import View
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol import HeldOutLosses
from posteriors.predictive import HeldOutSums, TuningGrid, choose

GRID = TuningGrid(prior_precisions=(1.0,))
TARGETS = torch.cat([torch.ones(90), torch.zeros(10)]).long()


def sums_of_a_sure_network(gap):
    """Held-out sums of logits (0, gap x) at 100 samples of x = 1 or -1, five of them wrong."""
    model = Model(name="sure", build=lambda: nn.Linear(1, 2), input_shape=(1,), num_outputs=2)
    mean = torch.tensor([0.0, gap, 0.0, 0.0])
    posterior = from_initial(model, "sure", mean, torch.zeros(0), 1.0)
    inputs = torch.cat([torch.ones(95, 1), -torch.ones(5, 1)])
    statistic = HeldOutLosses((1.0,), PredictionRule(), GRID)
    return statistic.of_posteriors([posterior], model, View(inputs, TARGETS))


def of_logits(gap):
    """(1, temperatures) summed log loss of logits divided by each temperature."""
    x = torch.cat([torch.ones(95), -torch.ones(5)]).double()
    logits = torch.stack([torch.zeros(100).double(), gap * x], dim=1)
    rows = torch.arange(100)
    return torch.stack(
        [-(logits / one).log_softmax(1)[rows, TARGETS].sum() for one in GRID.temperatures]
    )[None]


@pytest.mark.parametrize(
    "gap",
    [50.0, 170.0, *(gap for gap in (760.0, 2000.0))],
)
def test_sums_are_those_of_divided_logits(gap):
    found = sums_of_a_sure_network(gap)
    torch.testing.assert_close(found.log_loss, of_logits(gap), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("gap", [50.0, 170.0, *(gap for gap in (760.0, 2000.0))])
def test_the_temperature_is_that_of_divided_logits(gap):
    found = choose(sums_of_a_sure_network(gap))
    expected = choose(HeldOutSums(GRID, of_logits(gap), 100))
    assert found.temperature == expected.temperature
    assert found.log_loss == pytest.approx(expected.log_loss)


def test_a_client_that_forgot_to_scale_stops_no_prediction(clients, arrays, mlp, federation):
    x, y, group = arrays(8)[2]
    others = [data for data in clients(8) if data.client != "c2"]
    own = ClientData.from_arrays("c2", (x[:30] * 300, y[:30]), (x[30:], y[30:]), group)
    run = federation([*others, own], mlp(), "ifca", calibration=0.2).run(rounds=3)
    found = run.predict("c0", arrays(8)[0][0][:2]).mean
    np.testing.assert_allclose(found.sum(axis=1), 1)


def constant_logits(scale):
    """Logits that are the inputs times a scale, plus a part that trains a little."""

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            return scale * x[:, :2] + self.last(x)

    return Network


def logits_of(run, model, inputs):
    """Logits in float64 of the one model of a run, from its parameters."""
    network = model.build().double()
    (cluster,) = run.hypotheses.best.clusters
    nn.utils.vector_to_parameters(cluster.mean(model).double(), network.parameters())
    with torch.no_grad():
        return network(torch.as_tensor(inputs).double())


@pytest.mark.parametrize("scale", [1.0, 3000.0])
def test_predictions_at_a_temperature_are_those_of_divided_logits(
    clients, arrays, mlp, federation, scale
):
    model, inputs = mlp(constant_logits(scale)), arrays()[0][0][:10]
    run = federation(clients(), model, "fedavg").run(rounds=1)
    rule = PredictionRule(predictive="plug-in", temperature=1000.0)
    expected = (logits_of(run, model, inputs) / 1000).softmax(1).numpy()
    np.testing.assert_allclose(run.predict("c0", inputs, rule).mean, expected, atol=1e-5)


@pytest.mark.parametrize(
    "scale",
    [
        1.0,
        3000.0,
    ],
)
def test_the_log_loss_of_a_test_is_that_of_the_logits(clients, mlp, federation, scale):
    model, given = mlp(constant_logits(scale)), clients()
    run = federation(given, model, "fedavg").run(rounds=1)
    for data in given:
        view = data.views["test"]
        chosen = logits_of(run, model, view.inputs).log_softmax(1)[
            torch.arange(len(view)), view.targets
        ]
        found = run.records[-1].evaluations[data.client].nll
        assert found == pytest.approx(-float(chosen.sum()), rel=1e-4)
