"""Methods by name, small federations on handwritten digits, and clients that follow a script."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from bcfl import ClientData, Federation, Objective, methods
from bcfl.protocol.requests import Train
from bcfl.rounds.round import RoundConfig, server_round
from experiments import datasets, models, partitions


def method(name, *, local_steps=10, learning_rate=0.1, momentum=0.9, batch_size=32, **options):
    objective = Objective(
        local_steps=local_steps,
        learning_rate=learning_rate,
        momentum=momentum,
        batch_size=batch_size,
        **{key: options.pop(key) for key in ("prior_weight",) if key in options},
    )
    return methods.build(name, methods.Settings(objective=objective, **options))


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
                federation.recipe, federation.model, executor, state, RoundConfig(seed)
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
