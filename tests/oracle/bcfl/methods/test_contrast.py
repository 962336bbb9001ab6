"""CFL-CON (Ma 2023, equations 4.3 and 4.4) by hand."""

import math

import numpy as np
import pytest
import torch

from bcfl.protocol.regularizers import Contrast

LIVE = (1.0, 2.0, 3.0)
CLUSTERS = ((1.0, 2.0, 2.0), (-1.0, 0.0, 1.0), (3.0, 1.0, 0.0))


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def value_and_gradient(term, live, own, others):
    free = tensor(live).requires_grad_()
    value = term.penalty(free, tensor(own), [tensor(other) for other in others])
    value.backward()
    return value.item(), free.grad.numpy()


@pytest.mark.parametrize(
    ("live", "value", "gradient"),
    [
        (LIVE, 0.487346, (-0.004324, -0.039625, 0.027858)),
        (CLUSTERS[0], 0.473228, (0.053914, -0.019818, -0.007139)),
    ],
)
def test_contrast_of_parameters(live, value, gradient):
    found, slope = value_and_gradient(Contrast(0.5, 0.5), live, CLUSTERS[0], CLUSTERS[1:])
    assert found == pytest.approx(value, abs=5e-7)
    np.testing.assert_allclose(slope, gradient, atol=6e-7)
    assert slope @ np.array(live) == pytest.approx(0, abs=1e-12)  # a cosine knows no length


def test_one_step_of_contrast():
    _, slope = value_and_gradient(Contrast(0.5, 0.5), LIVE, CLUSTERS[0], CLUSTERS[1:])
    step = np.array(LIVE) - 0.1 * 0.5 * slope
    np.testing.assert_allclose(step, (1.000216, 2.001981, 2.998607), atol=6e-7)


def test_contrast_of_outputs():
    live, own = ((2.0, 0.0, -1.0), (0.5, 1.0, 0.0)), ((3.0, -1.0, 0.0), (1.0, 1.0, 1.0))
    other = ((1.0, 1.0, 0.0), (0.0, 2.0, 0.0))
    term = Contrast(1.0, 1.0, "outputs")
    found, _ = value_and_gradient(term, live, own, [other])
    assert found == pytest.approx(0.672896, abs=5e-7)
    rows = [
        value_and_gradient(term, live[i : i + 1], own[i : i + 1], [other[i : i + 1]])[0]
        for i in range(2)
    ]
    assert rows == pytest.approx([0.590935, 0.754856], abs=5e-7)


@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_contrast_lies_within_its_bounds(tau, count):
    random = np.random.default_rng(count)
    for _ in range(20):
        live, *models = random.normal(size=(count + 1, 4))
        found, _ = value_and_gradient(Contrast(1.0, tau), live, models[0], models[1:])
        assert -1e-12 <= found <= math.log(count) + 2 / tau + 1e-12
        if count == 1:
            assert found == pytest.approx(0, abs=1e-12)
