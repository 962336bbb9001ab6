"""Small models, clients and posteriors."""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import BlockSpec, ClientData, Model
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import RoundContext

torch.set_num_threads(1)  # the problems are too small for more


def linear_network():
    return nn.Sequential(nn.Linear(3, 2))


def two_layers():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def normalised():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


@pytest.fixture
def linear():
    return Model(name="linear", build=linear_network, input_shape=(3,), num_outputs=2)


@pytest.fixture
def regression():
    return Model(
        name="regression",
        build=lambda: nn.Sequential(nn.Linear(3, 1)),
        input_shape=(3,),
        num_outputs=1,
        likelihood="gaussian",
    )


@pytest.fixture
def batch_norm():
    return Model(name="normalised", build=normalised, input_shape=(3,), num_outputs=2)


@pytest.fixture
def shared_body():
    """A body that all clusters share and a head for each."""
    blocks = (BlockSpec("head", "cluster", ("2.",)), BlockSpec("body", "global", ("0.",)))
    return Model(
        name="shared-body", build=two_layers, input_shape=(3,), num_outputs=2, blocks=blocks
    )


def client(name, count, group=0, tested=4, seed=0):
    random = np.random.default_rng([seed, len(name), *name.encode()])

    def draw(size):
        x = random.normal(size=(size, 3)).astype(np.float32)
        return x, ((x[:, 0] > 0) ^ (group == 1)).astype(np.int64)

    return ClientData.from_arrays(name, draw(count), draw(tested) if tested else None, group)


@pytest.fixture
def make_client():
    return client


@pytest.fixture
def clients():
    return [client(f"c{i}", size, i % 2) for i, size in enumerate((8, 9, 10, 11))]


@pytest.fixture
def newborn():
    """A posterior around the initial network of a seed."""

    def of(model, seed=0, precision=1.0):
        mean, buffers = model.initial(seed)
        return from_initial(model, f"birth-{seed}", mean, buffers, precision)

    return of


@pytest.fixture
def context(linear):
    """What a policy may know in a round."""

    def of(participants, round=0, candidates_per_parent=1):
        counts = dict.fromkeys(participants, 2)
        return RoundContext(
            round=round,
            participants=tuple(participants),
            num_samples=counts,
            seed=0,
            model=linear,
            candidates_per_parent=candidates_per_parent,
        )

    return of
