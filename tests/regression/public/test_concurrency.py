"""Runs depend on their seed alone: not on other runs, threads, or the state of global generators.

Reported to neighbouring projects: the default generator is shared by threads and by users.
"""

import contextlib
import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from posteriors import DiagonalGaussian
from posteriors.local.variational import Variational


class Meeting:
    """Where threads wait for one another, for a moment and only while it is open."""

    barrier = None

    @classmethod
    def wait(cls):
        if cls.barrier is not None:
            with contextlib.suppress(BrokenBarrierError):
                cls.barrier.wait(2.0)

    @classmethod
    @contextlib.contextmanager
    def of_two(cls):
        cls.barrier = Barrier(2)
        try:
            yield
        finally:
            cls.barrier = None


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        Meeting.wait()
        hidden = F.dropout(torch.relu(self.first(x)), 0.5, self.training)
        Meeting.wait()
        return self.last(hidden)


def met():
    Meeting.wait()
    network = nn.Linear(4, 2)
    Meeting.wait()
    return network


def with_dropout():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


def test_dropout_in_two_threads_is_that_of_each_run_alone(clients, mlp, federation, parameters):
    prepared = [federation(clients(), mlp(Dropping), "fedavg", seed=seed) for seed in (0, 1)]
    expected = [parameters(one.run(rounds=1)) for one in prepared]
    with Meeting.of_two(), ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda one: parameters(one.run(rounds=1)), prepared))
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_initial_networks_in_two_threads_are_those_of_each_seed_alone(mlp):
    model = mlp(met)
    expected = [model.initial(seed)[0] for seed in (0, 1)]
    with Meeting.of_two(), ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda seed: model.initial(seed)[0], (0, 1)))
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("build", [None, with_dropout])
def test_a_run_inside_another_changes_neither(clients, mlp, federation, parameters, build):
    def prepared(seed):
        return federation(clients(), mlp(build), "ifca", seed=seed)

    inner = []

    def on_round(state, record):
        inner.append(parameters(prepared(1).run(rounds=1)))

    expected = [parameters(prepared(0).run(rounds=3)), parameters(prepared(1).run(rounds=1))]
    assert torch.equal(parameters(prepared(0).run(rounds=3, on_round=on_round)), expected[0])
    assert len(inner) == 3
    assert all(torch.equal(one, expected[1]) for one in inner)


def generators():
    _, keys, position, *_ = np.random.get_state()  # noqa: NPY002 - the global one is meant
    return torch.random.get_rng_state().tolist(), keys.tolist(), position, random.getstate()


@pytest.mark.parametrize("build", [None, with_dropout], ids=["plain", "dropout"])
@pytest.mark.parametrize(
    "name",
    [
        *("fedavg", "ifca", "wecfl", "ocfl-affinity", "fedgroup", "bcfl-g", "bcfl-mht-4", "ssgd"),
        *("ifca-con-rep", "bcfl-mht-4-cks"),
        "apd",
        "fedweit",
    ],
)
def test_a_run_leaves_the_global_generators(clients, mlp, federation, name, build):
    federation(clients(), mlp(build), name).run(rounds=1)  # libraries may draw when first imported
    before = generators()
    federation(clients(), mlp(build), name).run(rounds=1)
    assert generators() == before


@pytest.mark.parametrize("predictive", ["plug-in", "monte-carlo", "linearised"])
def test_a_prediction_leaves_the_global_generators(clients, mlp, federation, predictive):
    run = federation(clients(), mlp(), "bcfl-g").run(rounds=1)
    before = generators()
    run.predict("c0", np.zeros((2, 4), np.float32), predictive)
    assert generators() == before


@pytest.mark.parametrize(
    "posterior",
    ["laplace-full", "laplace-kron", "laplace-subnetwork", "laplace-last-layer"],
)
def test_a_posterior_leaves_the_global_generators(clients, mlp, federation, posterior):
    federation(clients(2), mlp(hidden=2), "bcfl-g", posterior=posterior).run(rounds=1)
    before = generators()
    federation(clients(2), mlp(hidden=2), "bcfl-g", posterior=posterior).run(rounds=1)
    assert generators() == before


@pytest.mark.parametrize("name", ["apd", "fedweit", "ssgd", "ewc"])
def test_results_do_not_depend_on_the_global_seed(clients, mlp, federation, parameters, name):
    found = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            found.append(parameters(federation(clients(), mlp(), name).run(rounds=2)))
    assert torch.equal(*found)


def test_a_variational_posterior_leaves_generators_and_the_store_of_pyro():
    import pyro

    network, prior = nn.Linear(2, 2), DiagonalGaussian(torch.zeros(6), torch.ones(6))
    inputs, targets = torch.linspace(-1, 1, 16).view(8, 2), torch.arange(8) % 2
    pyro.clear_param_store()
    pyro.param("mine", torch.ones(2))
    before = generators()
    try:
        Variational(steps=5, evidence_draws=2).fit(network, inputs, targets, prior)
        assert list(pyro.get_param_store().keys()) == ["mine"]
        assert pyro.param("mine").tolist() == [1.0, 1.0]
        assert generators() == before
    finally:
        pyro.clear_param_store()


def test_a_default_dtype_holds_again_after_runs_in_two_threads(clients, mlp, federation):
    prepared = [federation(clients(2), mlp(met), "fedavg", seed=seed) for seed in (0, 1)]
    torch.set_default_dtype(torch.float64)
    try:
        with Meeting.of_two(), ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda one: one.run(rounds=2), prepared))
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
