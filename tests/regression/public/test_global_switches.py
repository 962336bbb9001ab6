"""Switches of torch and numpy that a notebook sets change no result, and stay as they were.

Reported to neighbouring projects: a default type of float64, or gradients switched off, breaks or
changes what runs.
"""

import contextlib

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Model


@contextlib.contextmanager
def switched(change, value, before):
    change(value)
    try:
        yield
    finally:
        change(before)


SWITCHES = {
    "float64": lambda: switched(torch.set_default_dtype, torch.float64, torch.float32),
    "no-grad": torch.no_grad,
    "inference": torch.inference_mode,
    "deterministic": lambda: switched(torch.use_deterministic_algorithms, True, False),
    "anomalies": torch.autograd.detect_anomaly,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "numpy-raises": lambda: np.errstate(all="raise"),
    "threads": lambda: switched(torch.set_num_threads, 2, 1),
    "matmul": lambda: switched(torch.set_float32_matmul_precision, "medium", "highest"),
}


def conv_clients(arrays):
    return [
        ClientData.from_arrays(
            f"c{index}",
            (x[:30].reshape(-1, 1, 2, 2), y[:30]),
            (x[30:].reshape(-1, 1, 2, 2), y[30:]),
            group,
        )
        for index, (x, y, group) in enumerate(arrays(4))
    ]


def conv():
    return nn.Sequential(
        nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 2)
    )


@pytest.fixture
def outcome(clients, arrays, mlp, federation, parameters):
    """Parameters and predictions of a small run."""

    def run(kind, **options):
        if kind == "conv":
            data, model = (
                conv_clients(arrays),
                Model(name="conv", build=conv, input_shape=(1, 2, 2), num_outputs=2),
            )
        else:
            data, model = clients(4), mlp(hidden=4)
            options = {"executor": kind, **options}
        done = federation(data, model, "bcfl-g", **options).run(rounds=2)
        inputs = np.ones((1, *model.input_shape), np.float32)
        return parameters(done).clone().numpy(), done.predict("c0", inputs, "linearised").mean

    return run


@pytest.fixture(scope="module")
def expected():
    """Outcomes without any switch, by kind."""
    return {}


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("kind", ["loop", "batched", "conv"])
@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_changes_no_result(outcome, expected, name, kind):
    if kind not in expected:
        expected[kind] = outcome(kind)
    with SWITCHES[name]():
        found = outcome(kind)
    for ours, theirs in zip(found, expected[kind], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("executor", ["loop", "batched"])
def test_a_default_device_changes_no_result(outcome, executor):
    """Tensors of numbers that no device holds, where one is not named."""
    wanted = outcome("conv", executor=executor)
    with torch.device("meta"):
        found = outcome("conv", executor=executor)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_float64_goes_with_a_default_of_float64(outcome):
    with SWITCHES["float64"]():
        parameters, _ = outcome("batched", dtype=torch.float64)
    assert np.isfinite(parameters).all()


def test_initial_networks_depend_on_the_seed_alone(mlp):
    expected = mlp().initial(3)[0].double()
    with SWITCHES["float64"]():
        found = mlp().initial(3)[0].double()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["loop", "batched"])
def test_a_run_leaves_the_switches(outcome, kind):
    def switches():
        return (
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_num_threads(),
            torch.get_float32_matmul_precision(),
            np.geterr(),
        )

    before = switches()
    outcome(kind)
    assert switches() == before
