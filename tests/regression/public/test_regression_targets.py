"""Regression targets of shape (samples,) mean what (samples, 1) means, with every executor.

Reported to neighbouring projects: (n,) against (n, 1) breaks regression heads, or broadcasts.
"""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData


def data(shapes, dtype=np.float32):
    """Clients of a linear function whose sign depends on the group."""
    random = np.random.default_rng(0)
    found = []
    for index, shape in enumerate(shapes):
        x = random.normal(size=(40, 4)).astype(np.float32)
        y = (-1) ** index * x @ np.array([1, -1, 0.5, 0]) + 0.1 * random.normal(size=40)
        y = (np.round(3 * y) if np.issubdtype(dtype, np.integer) else y).astype(dtype)
        rows = (x[:30], y[:30].reshape(shape)), (x[30:], y[30:].reshape(shape))
        found.append(ClientData.from_arrays(f"c{index}", *rows, index % 2))
    return found


def smooth():
    return nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))


FLAT, ROWS = [(-1,)] * 4, [(-1, 1)] * 4
BAYESIAN = ["bcfl-g", "bcfl-mht-4", "bcfl-asym"]


@pytest.mark.parametrize("name", ["fedavg", "ifca", "faacl", *BAYESIAN])
def test_batched_models_are_those_of_rows(mlp, federation, parameters, name):
    check_equal(mlp(num_outputs=1, likelihood="gaussian"), federation, parameters, name, "batched")


@pytest.mark.parametrize("name", ["fedavg", "ifca"] + [n for n in BAYESIAN])
def test_models_one_after_the_other_are_those_of_rows(mlp, federation, parameters, name):
    check_equal(mlp(num_outputs=1, likelihood="gaussian"), federation, parameters, name, "loop")


def test_other_networks_give_the_models_of_rows(mlp, federation, parameters):
    model = mlp(smooth, num_outputs=1, likelihood="gaussian")
    check_equal(model, federation, parameters, "bcfl-g", "auto")


def check_equal(model, federation, parameters, name, executor):
    runs = [federation(data(shapes), model, name, executor=executor) for shapes in (FLAT, ROWS)]
    assert torch.equal(*(parameters(one.run(rounds=2)) for one in runs))


@pytest.mark.parametrize("executor", ["batched", "loop"])
def test_whole_numbers_are_numbers(mlp, federation, parameters, executor):
    model = mlp(num_outputs=1, likelihood="gaussian")
    runs = [
        federation(clients, model, "bcfl-g", executor=executor).run(rounds=2)
        for clients in (data(FLAT, np.int64), data(ROWS, np.int64))
    ]
    assert torch.equal(*map(parameters, runs))


@pytest.mark.parametrize("executor", ["loop", "batched"])
def test_clients_of_both_shapes_go_together(mlp, federation, parameters, executor):
    model = mlp(num_outputs=1, likelihood="gaussian")
    runs = [
        federation(data(shapes), model, "ifca", executor=executor).run(rounds=2)
        for shapes in ([(-1,), (-1, 1)] * 2, ROWS)
    ]
    assert torch.equal(*map(parameters, runs))


@pytest.mark.parametrize(
    "posterior", ["laplace-diag", "laplace-last-layer", "laplace-full", "laplace-kron"]
)
def test_local_posteriors_are_those_of_rows(mlp, federation, parameters, posterior):
    model = mlp(hidden=3, num_outputs=1, likelihood="gaussian")
    runs = [
        federation(data(shapes[:2]), model, "bcfl-g", posterior=posterior).run(rounds=1)
        for shapes in (FLAT, ROWS)
    ]
    assert torch.equal(*map(parameters, runs))
