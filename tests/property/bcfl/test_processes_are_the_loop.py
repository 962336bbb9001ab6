"""Workers give the answers of the loop to the last bit: any number of them, in any order."""

import sys

import cloudpickle
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.executors import LoopExecutor, ProcessesExecutor
from bcfl.executors.pool.workers import Workers
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.loss import Loss
from bcfl.protocol.statistics.predictions import Predictions
from bcfl.runtime.devices import limited_threads

CPU = torch.device("cpu")


def frozen():
    module = nn.Sequential(nn.Linear(16, 9), nn.ReLU(), nn.Linear(9, 3))
    module[0].requires_grad_(False)
    return module


def images():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3),
        nn.Flatten(), nn.Linear(64, 3),
    )  # fmt: skip


MODELS = {
    "frozen": Model(name="frozen", build=frozen, input_shape=(16,), num_outputs=3),
    "images": Model(name="images", build=images, input_shape=(1, 4, 4), num_outputs=3),
    "dense": Model(
        name="dense",
        build=lambda: nn.Sequential(nn.Linear(16, 33), nn.Tanh(), nn.Linear(33, 3)),
        input_shape=(16,),
        num_outputs=3,
    ),
}
objectives = st.builds(
    Objective,
    local_steps=st.integers(1, 3),
    batch_size=st.sampled_from([1, 3, 32]),
    weight_decay=st.sampled_from([0.0, 0.01]),
    prior_weight=st.sampled_from([0.0, 1.0]),
    curvature=st.sampled_from(["samples", "ggn", "mc_ggn", "empirical_fisher"]),
)


def clients_of(counts, model):
    """Clients whose arrays begin anywhere in memory."""
    random = np.random.default_rng([*counts])
    every = random.normal(size=(sum(counts) + 1, *model.input_shape)).astype(np.float32)
    first = np.concatenate([[0], np.cumsum(counts)])
    draw = (every[start + 1 : start + n + 1] for start, n in zip(first, counts, strict=False))
    return [
        ClientData.from_arrays(
            f"c{i}", (x, random.integers(0, 3, len(x))), (x[:2], [0, 1][: len(x)])
        )
        for i, x in enumerate(draw)
    ]


def born(model):
    posteriors = [from_initial(model, f"k{i}", *model.initial(i), 2.0) for i in range(3)]
    return {posterior.key: posterior for posterior in posteriors}


def asked_of(clients, keys, objective):
    asked = [Describe(data.client) for data in clients]
    asked += [Train(data.client, key, objective) for data in clients for key in keys]
    asked += [
        Score(client=data.client, models=keys, statistic=what)
        for data in clients
        for what in (Loss(), Evidence())
    ]
    mixture = (0.5, 0.25, 0.25)
    return asked + [
        Score(client=d.client, models=keys, statistic=Predictions(mixture), view="test")
        for d in clients
    ]


def numbers(answer):
    """All tensors and numbers of an answer."""
    if isinstance(answer, dict):
        return [number for part in answer.values() for number in numbers(part)]
    return list(vars(answer).values())


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.fixture(scope="module")
def pools():
    """One worker, and two; the functions of this module travel to them as they are."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pools = [Workers(1), Workers(2)]
    yield pools
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    for pool in pools:
        pool.close()


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=6, deadline=None)
@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=7).map(lambda some: [1, *some]),
    objective=objectives,
    which=st.integers(0, 1),
    random=st.randoms(use_true_random=False),
)
def test_answers_are_those_of_the_loop_to_the_last_bit(
    pools, name, counts, objective, which, random
):
    model = MODELS[name]
    clients, models = clients_of(counts, model), born(model)
    asked = asked_of(clients, tuple(models), objective)
    with limited_threads(1):
        loop = LoopExecutor.on(clients, model, 7, CPU, torch.float32)
        wanted = loop.answer(asked, models, 2)
    mixed = random.sample(clients, len(clients))
    executor = ProcessesExecutor.on(mixed, model, 7, CPU, torch.float32, workers=pools[which])
    some = random.sample(asked, random.randint(1, len(asked)))
    found = executor.answer(some, models, 2)
    assert set(found) == set(some)
    for request in some:
        pairs = zip(numbers(wanted[request]), numbers(found[request]), strict=True)
        assert all(same(one, other) for one, other in pairs), request
