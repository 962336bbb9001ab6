"""Arguments of another type are refused before work starts, by name and value."""

import numpy as np
import pytest
import torch

from bcfl import ClientData, Federation, checkpoint, methods
from bcfl.analysis import loggers
from experiments import datasets, models, report
from experiments import open as open_folder


def clients():
    random = np.random.default_rng(0)
    return [
        ClientData.from_arrays(
            f"c{i}", train=(random.normal(size=(20, 2)), random.integers(0, 2, 20))
        )
        for i in range(3)
    ]


class NotANumberAbove90(torch.nn.Module):
    def __init__(self, outputs=2):
        super().__init__()
        self.linear = torch.nn.Linear(2, outputs)

    def forward(self, x):
        return torch.where(x[:, :1] > 90, torch.nan, self.linear(x))


@pytest.fixture(scope="module")
def run():
    return Federation(clients(), NotANumberAbove90, methods.bcfl_g(num_clusters=2)).run(1)


@pytest.mark.parametrize("name", ["evaluate", "objectives"])
def test_switches_are_true_or_false(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got 'no'"):
        Federation(clients(), NotANumberAbove90, methods.fedavg(), **{name: "no"})


def test_planned_rounds_are_a_number():
    federation = Federation(clients(), NotANumberAbove90, methods.fedavg())
    with pytest.raises(ValueError, match=r"planned_rounds must be a whole number .*, got '2'"):
        federation.run(1, planned_rounds="2")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda run: run.save(None), "folder"),
        (lambda run: report(run, None), "path"),
        (lambda run: open_folder(None), "folder"),
        (lambda run: run.to_netcdf(None), "path"),
        (lambda run: checkpoint.save(run.state, None), "folder"),
        (lambda run: checkpoint.load(None), "checkpoint"),
        (lambda run: checkpoint.newest(None), "folder"),
        (lambda run: loggers.jsonl(None), "path"),
        (lambda run: loggers.csv_file(None), "path"),
    ],
)
def test_a_path_is_a_path(run, call, name):
    with pytest.raises(TypeError, match=f"{name} must be a path, got None"):
        call(run)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: methods.build(None), "name of a method must be text, got None"),
        (lambda run: loggers.together(3), "callbacks must be functions .* got 3"),
        (lambda run: run.smoothed("1"), "round must be a whole number between 1 and 1, got '1'"),
        (lambda run: run.association_graph("a"), "min_probability must be a number .* got 'a'"),
        (lambda run: run.tuned(clients=3), "clients must be names of clients, got 3"),
        (lambda run: run.tuned(clients="c0"), "clients must be names of clients, got 'c0'"),
        (lambda run: run.tuned(view=["test"]), r"view must be the name of a view, got \['test'\]"),
        (lambda run: run.predict_new([[0, 0]], ([[0, 0]], [0]), temperature=()), "temperature mus"),
        (lambda run: datasets.load(3), "name of a data set must be text, got 3"),
        (lambda run: datasets.load("optdigits", 3), "data_dir must be a path, got 3"),
        (lambda run: models.bilstm(input_shape=3), "input_shape must be .* got 3"),
        (lambda run: run.to_arviz("x"), "draws must be a whole number of at least 1, got 'x'"),
    ],
)
def test_an_argument_of_another_type_is_named(run, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(run)


def test_outputs_that_are_no_numbers_name_samples_and_model(run):
    inputs = np.array([[0.0, 0.0], [99.0, 0.0], [98.0, 1.0]])
    message = r"inputs .*: for 2 of 3 samples the model of cluster \d gives NaN or infinity"
    with pytest.raises(ValueError, match=message):
        run.predict("c0", inputs)
    with pytest.raises(ValueError, match=message.replace("inputs", "adaptation")):
        run.predict_new(inputs, (inputs, [0, 1, 0]))
    values = [
        ClientData.from_arrays(f"c{i}", train=(np.zeros((4, 2)), np.zeros((4, 2))))
        for i in range(2)
    ]
    numbers = Federation(values, NotANumberAbove90, methods.fedavg()).run(1)
    with pytest.raises(ValueError, match=message):
        numbers.predict_values("c0", inputs)


def test_an_executor_of_a_similar_name_is_suggested():
    with pytest.raises(ValueError, match=r"got 'batch'\. Did you mean 'batched'\?"):
        Federation(clients(), NotANumberAbove90, methods.fedavg(), executor="batch")
