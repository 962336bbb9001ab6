from dataclasses import replace

import numpy as np
import pytest

from bcfl import Federation, Objective, PredictionRule
from bcfl.methods import build
from posteriors.predictive import TuningGrid
from tests.recipes import built

GRID = TuningGrid((0.5, 10.0, 1e4), (0.4, 1.0, 2.5))


def log_loss(run, clients, rule):
    total = 0.0
    for data in clients:
        view = data.views["test"]
        p = run.predict(data.client, view.inputs, rule).mean
        total -= np.log(p[np.arange(len(view)), view.targets.numpy()]).sum()
    return total


@pytest.mark.parametrize(
    ("name", "count"),
    [("plug-in", 4), ("monte-carlo", 4), ("linearised", 1), ("probit", 4), ("bridge", 4)],
)
def test_nothing_of_its_precision_predicts_better_and_none_by_more_than_a_parameter_costs(
    run, clients, name, count
):
    clients = clients[:count]
    names = [data.client for data in clients]
    rule = PredictionRule(predictive=name, num_draws=16)
    found = run.tuned(rule, clients=names, view="test", grid=GRID)
    every = [
        PredictionRule(
            predictive=name, prior_precision=precision, temperature=temperature, num_draws=16
        )
        for precision in GRID.prior_precisions
        for temperature in GRID.temperatures
    ]
    losses = np.reshape([log_loss(run, clients, rule) for rule in every], (3, 3))
    penalised = losses + (np.log(GRID.temperatures) / 0.5) ** 2 / 2  # a log-normal prior around 1
    losses = losses[np.arange(3), penalised.argmin(axis=1)]
    samples = sum(len(data.views["test"]) for data in clients)
    best = penalised.min(axis=1)
    place = np.flatnonzero(best <= best.min() + np.log(samples) / 2).max()
    assert log_loss(run, clients, found) == pytest.approx(losses[place], rel=1e-9)
    if name == "plug-in":
        assert np.ptp(losses) == 0
    else:
        assert found.prior_precision == GRID.prior_precisions[place]
    assert (found.predictive, found.num_draws) == (name, 16)
    assert (found.prior_precision is None) == (name == "plug-in")


@pytest.mark.parametrize("name", ["bcfl-g", "wecfl"])
def test_runs_that_set_samples_aside_predict_as_tuned(linear, clients, name):
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=3, batch_size=4), calibration=0.4
    )
    federation = Federation(clients, linear, built(name, **settings))
    assert [len(data.views["validation"]) for data in federation.clients] == [3, 3, 4, 4]
    run = federation.run(2)
    assert run.rule == run.tuned("plug-in")
    x = clients[0].views["test"].inputs
    expected = run.predict("c0", x, run.rule).mean
    np.testing.assert_array_equal(run.predict("c0", x).mean, expected)


def test_temperature_is_tuned_from_over_confidence(linear, clients):
    settings = dict(
        num_clusters=2,
        objective=Objective(local_steps=60, batch_size=8, learning_rate=3.0),
        calibration=0.4,
    )
    run = Federation(clients, linear, build("wecfl", **settings)).run(2)
    assert run.rule.temperature > 1.5


def test_without_held_out_samples_nothing_is_tuned(run):
    assert run.rule == PredictionRule()


def test_calibration_is_a_share():
    with pytest.raises(ValueError, match=r"calibration must lie in \[0, 1\), got 1"):
        build("fedavg", calibration=1.0)


def test_order_of_clients_does_not_matter(run):
    one = run.tuned("monte-carlo", view="test", grid=GRID)
    names = run.clients[::-1]
    assert run.tuned("monte-carlo", clients=names, view="test", grid=GRID) == one


@pytest.mark.parametrize("view", ["train", "train:1", "memory:0"])
def test_samples_that_were_trained_on_cannot_tune(run, view):
    message = rf"view must name samples that were not trained on, got '{view}'.*calibration=0\.2"
    with pytest.raises(ValueError, match=message):
        run.tuned(view=view)


def test_only_clients_of_the_run_with_samples_can_tune(run):
    with pytest.raises(
        ValueError, match=r"in the view 'validation', none has; .*calibration=0\.2 .* view="
    ):
        run.tuned()
    with pytest.raises(ValueError, match=r"client must be one of .*, got 'z'"):
        run.tuned(clients=["z"], view="test")
    with pytest.raises(ValueError, match="executor must reach the clients"):
        replace(run, executor=None).tuned(view="test")
