"""A problem of six clients in two hidden groups that every method solves in milliseconds."""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Federation, Model, Objective
from bcfl.methods import Settings, build

NUM_CLUSTERS = 2

torch.set_num_threads(1)  # the problems are too small for more


def network():
    return nn.Sequential(nn.Linear(3, 2))


def samples(random, count, group):
    x = random.normal(size=(count, 3)).astype(np.float32)
    return x, ((x[:, 0] > 0) ^ (group == 1)).astype(np.int64)


def clients_of(sizes, tested=5):
    """Clients `c0`, `c1`, ... of the given numbers of training samples, groups in turn."""
    random = np.random.default_rng(7)
    return [
        ClientData.from_arrays(
            f"c{index}",
            samples(random, size, index % 2),
            samples(random, tested, index % 2) if tested else None,
            index % 2,
        )
        for index, size in enumerate(sizes)
    ]


@pytest.fixture
def model():
    return Model("linear", network, (3,), 2)


@pytest.fixture
def make_clients():
    return clients_of


@pytest.fixture
def recipe():
    def of(name, **settings):
        objective = settings.pop("objective", Objective(local_steps=4, batch_size=4))
        return build(name, Settings(NUM_CLUSTERS, objective, **settings))

    return of


@pytest.fixture
def federation(model, recipe):
    """Build a federation from a method or its name."""

    def of(method, sizes=(8, 9, 8, 9, 8, 9), clients=None, **arguments):
        chosen = recipe(method) if isinstance(method, str) else method
        given = clients_of(sizes) if clients is None else clients
        return Federation(given, model, chosen, device="cpu", **arguments)

    return of
