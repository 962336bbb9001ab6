"""The curvature at the outputs keeps its digits for classes of tiny probability."""

import mpmath
import pytest
import torch
from torch import nn

from posteriors import diagonal_curvature


def right(logits):
    """p (1 - p) of each class, without a difference, at 50 digits."""
    with mpmath.workdps(50):
        weights = [mpmath.exp(mpmath.mpf(float(logit))) for logit in logits]
        total = mpmath.fsum(weights)
        shares = [
            weight / total * mpmath.fsum(weights[:k] + weights[k + 1 :]) / total
            for k, weight in enumerate(weights)
        ]
        return torch.tensor(list(map(float, shares)), dtype=torch.float64)


@pytest.mark.parametrize(
    ("logits", "dtype"),
    [
        ([0.0, -1.0, 2.0], torch.float32),
        ([0.0, -40.0, -41.0], torch.float32),
        ([0.0, -53.0, -54.0], torch.float32),
        ([0.0, -60.0, -61.0, -62.0], torch.float32),
        ([0.0, -300.0, -301.0], torch.float64),
        ([0.0, -371.0, -372.0], torch.float64),
    ],
)
def test_curvature_of_a_bias(logits, dtype):
    layer = nn.Linear(1, len(logits), dtype=dtype)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor(logits, dtype=dtype))
    inputs = torch.zeros(1, 1, dtype=dtype)
    measured = diagonal_curvature(layer, inputs, torch.tensor([0]))[-len(logits) :]
    tolerance = 64 * torch.finfo(dtype).eps
    expected = right(torch.tensor(logits, dtype=dtype))
    torch.testing.assert_close(measured.double(), expected, rtol=tolerance, atol=0.0)
