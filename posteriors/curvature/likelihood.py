"""Likelihoods of a network's outputs: value, gradient and curvature, each formula once.

`categorical` has the logits of classes as outputs, `gaussian` means of unit variance, `bernoulli`
a logit for each label, of which any number may be present.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from posteriors.networks.functional import outputs_at

CurvatureKind = Literal["ggn", "mc_ggn", "empirical_fisher"]
Likelihood = Literal["categorical", "gaussian", "bernoulli"]
Reduction = Literal["none", "mean", "sum"]
LogLikelihood = Callable[[Tensor], Tensor]
"""Summed log likelihood, one float64 number in nats, of a flat parameter vector (parameters,)."""


def negative_log_likelihood(
    outputs: Tensor, targets: Tensor, likelihood: Likelihood, reduction: Reduction = "none"
) -> Tensor:
    """Negative log likelihood in nats, with its normaliser, in the dtype of the outputs.

    Args:
        outputs: Logits or means, (samples, outputs).
        targets: Class indices (samples,), or (samples, outputs) values for `gaussian`, and 0 or 1
            for `bernoulli`.
        likelihood: What the outputs are parameters of.
        reduction: `none` gives one value per sample, (samples,); `mean` and `sum` a scalar.
    """
    if likelihood == "categorical":
        return functional.cross_entropy(outputs, targets, reduction=reduction)
    values = targets.reshape(outputs.shape)
    if likelihood == "bernoulli":
        each = functional.binary_cross_entropy_with_logits(
            outputs, values.to(outputs), reduction="none"
        )
    else:
        each = 0.5 * ((outputs - values).square() + math.log(2 * math.pi))
    losses = each.flatten(1).sum(1)
    match reduction:
        case "none":
            return losses
        case "mean":
            return losses.mean()
        case "sum":
            return losses.sum()


def log_likelihood(outputs: Tensor, targets: Tensor, likelihood: Likelihood) -> Tensor:
    """Log likelihood summed over samples, a float64 scalar in nats.

    Args:
        outputs: Logits or means, (samples, outputs).
        targets: As in `negative_log_likelihood`.
        likelihood: What the outputs are parameters of.
    """
    return -negative_log_likelihood(outputs.double(), targets, likelihood, "sum")


def loss_gradient(
    outputs: Tensor, targets: Tensor, likelihood: Likelihood, weights: Tensor | None = None
) -> Tensor:
    """Gradient in the outputs of each sample's negative log likelihood, (..., samples, outputs).

    Args:
        outputs: Logits or means, (..., samples, outputs).
        targets: Class indices (..., samples), or values of as many numbers as the outputs.
        likelihood: What the outputs are parameters of.
        weights: Factor of each sample's loss, (..., samples); 1 by default.
    """
    if weights is None:
        weights = outputs.new_ones(outputs.shape[:-1])
    weights = weights.unsqueeze(-1)
    if likelihood != "categorical":
        means = outputs.sigmoid() if likelihood == "bernoulli" else outputs
        return (means - targets.reshape(outputs.shape)) * weights
    gradient = outputs.softmax(-1) * weights
    return gradient.scatter_add_(-1, targets.long().unsqueeze(-1), -weights)


def output_factors(
    outputs: Tensor, targets: Tensor, kind: CurvatureKind, likelihood: Likelihood
) -> Tensor:
    """Columns S with Σ S Sᵀ = the curvature of each sample's loss in its outputs.

    For `ggn` that is the Hessian in the outputs: diag(p) - p pᵀ with p the softmax for a
    categorical likelihood, the identity for a Gaussian one of unit variance, diag(p (1 - p)) with p
    the sigmoid for labels. For `empirical_fisher` it is the outer product of the loss gradient, a
    single column, and so it is for `mc_ggn` once the targets were drawn from the model
    (`draw_targets`).

    Args:
        outputs: Logits or means, (samples, outputs).
        targets: As in `negative_log_likelihood`.
        kind: Which curvature.
        likelihood: What the outputs are parameters of.

    Returns:
        Columns, (columns, samples, outputs), without gradient: one less than there are classes
        for a categorical `ggn`, one per output for the others.
    """
    outputs = outputs.detach()
    size = outputs.shape[1]
    if kind != "ggn":
        return loss_gradient(outputs, targets, likelihood).unsqueeze(0)
    if likelihood != "categorical":
        identity = torch.eye(size, dtype=outputs.dtype, device=outputs.device)
        columns = identity.unsqueeze(1).expand(size, *outputs.shape)
        return columns if likelihood == "gaussian" else columns * _sigmoid_deviation(outputs)
    return _softmax_factors(outputs.softmax(1))


def draw_noise(
    kind: CurvatureKind, outputs: Tensor, likelihood: Likelihood, generator: torch.Generator | None
) -> Tensor | None:
    """Random numbers that `draw_targets` turns into one target per sample; None without `mc_ggn`.

    Args:
        kind: Which curvature.
        outputs: Anything of the shape (samples, outputs), dtype and device of the outputs.
        likelihood: What the outputs are parameters of.
        generator: Source of the numbers, needed for `mc_ggn`.

    Returns:
        Uniform numbers in [0, 1), float64, (samples,) for `categorical` and (samples, outputs) for
        `bernoulli`; standard normal numbers (samples, outputs) for `gaussian`.

    Raises:
        ValueError: If `kind` is `mc_ggn` and no generator is given.
    """
    if kind != "mc_ggn":
        return None
    if generator is None:
        raise ValueError("generator must be given for kind 'mc_ggn', got None")
    if likelihood == "gaussian":
        noise = torch.randn(
            outputs.shape, generator=generator, dtype=outputs.dtype, device=generator.device
        )
        return noise.to(outputs.device)
    shape = outputs.shape if likelihood == "bernoulli" else outputs.shape[:1]
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
    return uniform.to(outputs.device)


def draw_targets(outputs: Tensor, noise: Tensor, likelihood: Likelihood) -> Tensor:
    """Targets drawn from the model's own prediction, one per sample.

    Args:
        outputs: (samples, outputs) of the network.
        noise: random numbers from `draw_noise`.
        likelihood: of the outputs.
    """
    outputs = outputs.detach()
    if likelihood == "gaussian":
        return outputs + noise
    if likelihood == "bernoulli":
        return (noise < outputs.double().sigmoid()).to(outputs)
    rising = outputs.double().softmax(1).cumsum(1)
    drawn = torch.searchsorted(rising, noise[:, None] * rising[:, -1:], right=True)
    return drawn.squeeze(1).clamp(max=outputs.shape[1] - 1)


def check_targets(outputs: Tensor, targets: Tensor, likelihood: Likelihood) -> None:
    """Check that targets suit the outputs and the likelihood.

    Args:
        outputs: (samples, outputs) of the network.
        targets: (samples,) classes, or (samples, outputs) values or labels.
        likelihood: of the outputs.

    Raises:
        ValueError: If the shape or a value of the targets does not suit the outputs.
    """
    if outputs.ndim != 2:
        raise ValueError(
            f"module must give outputs of shape (samples, outputs), got {tuple(outputs.shape)}"
        )
    if likelihood != "categorical":
        if targets.shape[1:] != outputs.shape[1:]:
            raise ValueError(
                f"targets must have the outputs' shape (samples, {outputs.shape[1]}), "
                f"got {tuple(targets.shape)}"
            )
        if likelihood == "bernoulli" and not bool(((targets == 0) | (targets == 1)).all()):
            raise ValueError("targets must be 0 or 1 for each label, found another number")
        return
    if targets.ndim != 1 or targets.is_floating_point():
        raise ValueError(
            f"targets must be class indices of shape (samples,), "
            f"got {tuple(targets.shape)} of {targets.dtype}"
        )
    low, high = int(targets.min()), int(targets.max())
    if low < 0 or high >= outputs.shape[1]:
        raise ValueError(f"targets must lie in 0 to {outputs.shape[1] - 1}, found {low} to {high}")


def network_log_likelihood(
    module: nn.Module, inputs: Tensor, targets: Tensor, likelihood: Likelihood = "categorical"
) -> LogLikelihood:
    """Log likelihood of a data set as a function of the network's flat parameter vector.

    Args:
        module: Network with outputs (samples, outputs), used in eval mode.
        inputs: Inputs, (samples, ...), at least one sample.
        targets: As in `negative_log_likelihood`.
        likelihood: What the outputs are parameters of.

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


def _sigmoid_deviation(logits: Tensor) -> Tensor:
    """Standard deviation sqrt(p (1 - p)) of labels, small numbers with all their digits."""
    return (0.5 * (functional.logsigmoid(logits) + functional.logsigmoid(-logits))).exp()


def _softmax_factors(probabilities: Tensor) -> Tensor:
    """Cholesky columns of diag(p) - p pᵀ, (classes - 1, samples, classes).

    Column j has the entry d_j = sqrt(p_j q_j / (p_j + q_j)) at j and -d_j p_i / q_j at i > j, with
    q_j the sum of p_i over i > j. Nothing is subtracted, so small numbers keep all their digits
    where the network is confident.
    """
    smallest = torch.finfo(probabilities.dtype).tiny
    from_here = probabilities.flip(1).cumsum(1).flip(1)
    after = from_here[:, 1:]
    diagonal = (probabilities[:, :-1] * (after / from_here[:, :-1].clamp(min=smallest))).sqrt()
    below = -probabilities.unsqueeze(1) * (diagonal / after.clamp(min=smallest)).unsqueeze(2)
    columns = below.triu(1)
    columns.diagonal(dim1=1, dim2=2).copy_(diagonal)
    return columns.transpose(0, 1)
