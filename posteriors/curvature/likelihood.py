"""Log likelihood of targets under a network's outputs, in float64 nats."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from posteriors.curvature.output_factors import Likelihood, check_targets
from posteriors.networks.functional import outputs_at

LogLikelihood = Callable[[Tensor], Tensor]
"""Summed log likelihood, one float64 number in nats, of a flat parameter vector (parameters,)."""


def log_likelihood(outputs: Tensor, targets: Tensor, likelihood: Likelihood) -> Tensor:
    """Log likelihood summed over samples, a float64 scalar in nats.

    Args:
        outputs: Logits or means, (samples, outputs).
        targets: Class indices (samples,), or values (samples, outputs) for `gaussian`.
        likelihood: `categorical`, or `gaussian` of unit variance with its normaliser.
    """
    outputs = outputs.double()
    if likelihood == "categorical":
        return -functional.cross_entropy(outputs, targets, reduction="sum")
    squares = (outputs - targets.double()).square().sum()
    return -0.5 * squares - 0.5 * outputs.numel() * math.log(2 * math.pi)


def network_log_likelihood(
    module: nn.Module, inputs: Tensor, targets: Tensor, likelihood: Likelihood = "categorical"
) -> LogLikelihood:
    """Log likelihood of a data set as a function of the network's flat parameter vector.

    Args:
        module: Network with outputs (samples, outputs), used in eval mode.
        inputs: Inputs, (samples, ...), at least one sample.
        targets: Class indices (samples,), or values (samples, outputs) for `gaussian`.
        likelihood: `categorical` or `gaussian` (unit variance).

    Returns:
        A differentiable function: vector (parameters,) -> float64 scalar in nats.

    Raises:
        ValueError: If numbers of samples differ or the targets don't suit the likelihood.
    """
    if inputs.ndim == 0 or len(inputs) == 0 or len(targets) != len(inputs):
        raise ValueError(
            f"inputs and targets must hold the same number of samples, at least one, "
            f"got shapes {tuple(inputs.shape)} and {tuple(targets.shape)}"
        )
    dtype = next(module.parameters()).dtype
    with torch.no_grad():
        vector = torch.cat([value.flatten() for value in module.parameters()])
        check_targets(outputs_at(module, vector, inputs[:1]), targets, likelihood)

    def of_vector(vector: Tensor) -> Tensor:
        return log_likelihood(outputs_at(module, vector.to(dtype), inputs), targets, likelihood)

    return of_vector
