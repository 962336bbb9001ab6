"""Small federations, methods by name, and clients that report what they like."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, View
from bcfl.rounds.round import RoundConfig, server_round
from tests.recipes import built

FEATURES, CLASSES = 6, 3


def method(name, *, local_steps=10, learning_rate=0.05, **options):
    objective = Objective(local_steps=local_steps, learning_rate=learning_rate)
    return built(name, objective=objective, **options)


def network():
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def draw_clients(count, samples=20, groups=2, test=5, seed=0):
    """Clients of alternating groups, whose classes depend on the inputs as their group has it."""
    random = np.random.default_rng(seed)
    maps = [2 * random.normal(size=(FEATURES, CLASSES)) for _ in range(groups)]

    def draw(size, group):
        x = random.normal(size=(size, FEATURES))
        y = (x @ maps[group] + random.gumbel(size=(size, CLASSES))).argmax(axis=1)
        return x.astype(np.float32), y

    return [
        ClientData.from_arrays(
            f"c{i:03d}", draw(samples, i % groups), draw(test, i % groups), i % groups
        )
        for i in range(count)
    ]


@dataclass(frozen=True)
class Tampering:
    """An executor one of whose clients changes its answers."""

    executor: object
    client: str
    change: object

    def answer(self, requests, models, round):
        answers = self.executor.answer(requests, models, round)
        for request in requests:
            if request.client == self.client and request in answers:
                answers[request] = self.change(answers[request])
        return answers


@pytest.fixture
def build_method():
    return method


@pytest.fixture
def model():
    return Model(name="perceptron", build=network, input_shape=(FEATURES,), num_outputs=CLASSES)


@pytest.fixture
def make_clients():
    return draw_clients


@pytest.fixture
def diverging():
    """Clients, one of which has finite inputs so large that its training gives no numbers."""
    clients = draw_clients(6)
    old = clients[1].views["train"]
    views = {**clients[1].views, "train": View(old.inputs * 1e12, old.targets)}
    clients[1] = replace(clients[1], views=views)
    return clients


@pytest.fixture
def run_tampered(model):
    """Run rounds in which one client changes its answers."""

    def run(clients, recipe, change, rounds, liar="c001"):
        federation = Federation(clients, model, recipe, seed=0)
        state, records = federation.initial_state(), []
        executor = Tampering(federation.engine, liar, change)
        for _ in range(rounds):
            state, record = server_round(
                federation.method, model, executor, state, RoundConfig(seed=federation.seed)
            )
            records.append(record)
        return state.hypotheses, records

    return run
