"""Methods by name, small federations on handwritten digits, and clients that follow a script."""

from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation, ClientData, Federation, Objective
from bcfl.protocol.requests import Train
from bcfl.rounds.round import RoundConfig, server_round
from experiments import datasets, models, partitions
from tests.recipes import built

TRAINING = {field.name for field in fields(Objective)}
FUSING = {field.name for field in fields(Aggregation)}


def method(name, **options):
    """A method by name; options of local training and of fusion are told by their names."""
    training, fusing, rest = (
        {key: value for key, value in options.items() if wanted(key)}
        for wanted in (
            lambda key: key in TRAINING,
            lambda key: key in FUSING,
            lambda key: key not in TRAINING | FUSING,
        )
    )
    settings = dict(objective=Objective(**training), **fusing, **rest)
    return built(name, **settings)


@dataclass
class Watching:
    """An executor that notes trainings and their answers, and may change the answers."""

    executor: object
    change: object = None
    answers: list = field(default_factory=list)

    def answer(self, requests, models, round):
        answers = self.executor.answer(requests, models, round)
        for request in requests:
            if isinstance(request, Train):
                if self.change is not None:
                    answers[request] = self.change(request, models, answers[request])
                self.answers.append((round, request, answers[request]))
        return answers


@pytest.fixture
def build_method():
    return method


@pytest.fixture(scope="session")
def digits():
    return datasets.load("optdigits")


@pytest.fixture
def perceptron():
    return models.mlp((1, 8, 8), 16, 10)


@pytest.fixture
def divide(digits):
    """Divide the digits among clients by the name of a partition."""

    def of(name, **options):
        return list(partitions.build(name, digits, {"seed": 0, **options}))

    return of


@pytest.fixture
def watch():
    """Run rounds and note every training: hypotheses, records, and (round, request, answer)."""

    def run(clients, model, recipe, rounds, *, change=None, seed=0):
        federation = Federation(clients, model, recipe, seed=seed)
        state, records = federation.initial_state(), []
        executor = Watching(federation.engine, change)
        for _ in range(rounds):
            state, record = server_round(
                federation.method, federation.model, executor, state, RoundConfig(seed=seed)
            )
            records.append(record)
        return state.hypotheses, records, executor.answers

    return run


@pytest.fixture
def placed():
    """Change that puts the trained model of each client at a point of the plane.

    The first two parameters of a block are the point, all others are as they were sent.
    """

    def at(model, points, block=""):
        (first, *_), _ = model.block_slots[block or model.blocks[0].name]

        def change(request, posteriors, answer):
            mean = posteriors[request.start].mean(model).clone()
            mean[first.start : first.start + 2] = torch.tensor(points[request.client])
            return replace(answer, mean=mean)

        return change, slice(first.start, first.start + 2)

    return at


@pytest.fixture
def make_client():
    """A client with so many random samples of ten classes."""

    def of(name, count, group=0):
        random = np.random.default_rng([count, group])
        inputs = random.random((count, 1, 8, 8)).astype(np.float32)
        return ClientData.from_arrays(name, (inputs, np.arange(count) % 10), None, group)

    return of
