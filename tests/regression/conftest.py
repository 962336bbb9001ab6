"""Small clients in two hidden groups, small models, and the one place that builds methods by name.

`federation` is the only caller of `bcfl.methods` in this folder. Code that may end the process runs
in a child, which imports this file as the module `conftest`.
"""

import os
import subprocess
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import bcfl
from bcfl import ClientData, Federation, Model, methods

NUM_FEATURES, NUM_TRAIN, NUM_TEST = 4, 30, 10
FEDERATION_OPTIONS = set(signature(Federation).parameters) - {"clients", "model", "method"}
PROLOGUE = """
from conftest import *
torch.set_num_threads(1)
print("begin", flush=True)
"""


def arrays_of(count=6, seed=0, num_samples=NUM_TRAIN + NUM_TEST):
    """Inputs, classes and group of each client; the groups are cut by two random directions."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(2, NUM_FEATURES))
    rows = []
    for index in range(count):
        group = index % 2
        x = random.normal(size=(num_samples, NUM_FEATURES)).astype(np.float32)
        rows.append((x, (x @ directions[group] > 0).astype(np.int64), group))
    return rows


def clients_of(count=6, seed=0, names=None, groups=None, tested=True):
    """Clients `c0`, `c1`, ... of 30 training samples and 10 test samples each.

    Their samples are tensors of torch, which begin where executors need no copy of them.
    """
    return [
        ClientData.from_arrays(
            f"c{index}" if names is None else names[index],
            (torch.tensor(x[:NUM_TRAIN]), torch.tensor(y[:NUM_TRAIN])),
            (torch.tensor(x[NUM_TRAIN:]), torch.tensor(y[NUM_TRAIN:])) if tested else None,
            group if groups is None else groups[index],
        )
        for index, (x, y, group) in enumerate(arrays_of(count, seed))
    ]


def mlp_of(build=None, hidden=8, num_outputs=2, likelihood="categorical", shape=(NUM_FEATURES,)):
    """A network of one hidden layer, or another one that `build` makes."""

    def network():
        return nn.Sequential(nn.Linear(shape[0], hidden), nn.ReLU(), nn.Linear(hidden, num_outputs))

    return Model(
        name="net",
        build=build or network,
        input_shape=shape,
        num_outputs=num_outputs,
        likelihood=likelihood,
    )


def federation_of(clients, model, method_name, **options):
    """A federation of a method by its name, of two clusters unless told otherwise.

    Options that `Federation` knows go there, all others to the recipe of the method.
    """
    arguments = {name: options.pop(name) for name in FEDERATION_OPTIONS & options.keys()}
    given = methods.applicable(method_name, {"num_clusters": 2}) | options
    method = methods.build(method_name, **given)
    return Federation(clients, model, method, **{"device": "cpu", **arguments})


def parameters_of(run):
    """Parameters of all clusters of all hypotheses, one vector in float64."""
    return torch.cat([p.mean(run.model).double() for h in run.hypotheses for p in h.clusters])


def failures_of(run):
    """Sentences about failed requests of all rounds."""
    return [failure for record in run.records for failure in record.ledger.failures]


def run_child(code, timeout=60, **environment):
    """Run code in a Python process of its own, after `from conftest import *`.

    Returns:
        The completed process, without the first line of its output.

    Raises:
        RuntimeError: the child failed before the code began, or by an exception.
    """
    here = Path(__file__).parent
    paths = [str(here), str(Path(bcfl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROLOGUE + code],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
    )
    if done.returncode == 1 or not done.stdout.startswith("begin\n"):
        raise RuntimeError(f"the child failed: {done.stderr[-500:]}")
    done.stdout = done.stdout.removeprefix("begin\n")
    return done


@pytest.fixture
def arrays():
    return arrays_of


@pytest.fixture
def clients():
    return clients_of


@pytest.fixture
def mlp():
    return mlp_of


@pytest.fixture
def federation():
    return federation_of


@pytest.fixture
def parameters():
    return parameters_of


@pytest.fixture
def failures():
    return failures_of


@pytest.fixture(scope="session")
def child():
    return run_child
