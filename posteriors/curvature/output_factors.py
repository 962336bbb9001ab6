"""Factors of the loss curvature at a network's outputs, to be propagated back through it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

CurvatureKind = Literal["ggn", "mc_ggn", "empirical_fisher"]
Likelihood = Literal["categorical", "gaussian"]


def output_factors(
    outputs: Tensor, targets: Tensor, kind: CurvatureKind, likelihood: Likelihood
) -> Tensor:
    """Columns S with Σ S Sᵀ = the curvature of each sample's loss in its outputs.

    For `ggn` that is the Hessian in the outputs: diag(p) - p pᵀ with p the softmax for a
    categorical likelihood, the identity for a Gaussian one of unit variance. For
    `empirical_fisher` it is the outer product of the loss gradient, a single column, and so it is
    for `mc_ggn` once the targets were drawn from the model (`draw_targets`).

    Args:
        outputs: Logits or means, (samples, outputs).
        targets: Class indices (samples,), or values (samples, outputs) for `gaussian`.
        kind: Which curvature.
        likelihood: What the outputs are parameters of.

    Returns:
        Columns, (columns, samples, outputs), without gradient: one less than there are classes
        for a categorical `ggn`, one per output for a Gaussian one.
    """
    outputs = outputs.detach()
    size = outputs.shape[1]
    if kind != "ggn":
        return _loss_gradient(outputs, targets, likelihood).unsqueeze(0)
    if likelihood == "gaussian":
        identity = torch.eye(size, dtype=outputs.dtype, device=outputs.device)
        return identity.unsqueeze(1).expand(size, *outputs.shape)
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
        Uniform numbers in [0, 1), (samples,), float64, for `categorical`; standard normal numbers
        (samples, outputs) for `gaussian`.

    Raises:
        ValueError: If `mc_ggn` is asked for without a generator.
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
    uniform = torch.rand(
        len(outputs), generator=generator, dtype=torch.float64, device=generator.device
    )
    return uniform.to(outputs.device)


def draw_targets(outputs: Tensor, noise: Tensor, likelihood: Likelihood) -> Tensor:
    """Targets that follow the model's own prediction, one per sample, from `draw_noise`."""
    outputs = outputs.detach()
    if likelihood == "gaussian":
        return outputs + noise
    rising = outputs.double().softmax(1).cumsum(1)
    drawn = torch.searchsorted(rising, noise[:, None] * rising[:, -1:], right=True)
    return drawn.squeeze(1).clamp(max=outputs.shape[1] - 1)


def check_targets(outputs: Tensor, targets: Tensor, likelihood: Likelihood) -> None:
    """Raise ValueError unless the targets suit the outputs (samples, outputs) and likelihood."""
    if outputs.ndim != 2:
        raise ValueError(
            f"module must give outputs of shape (samples, outputs), got {tuple(outputs.shape)}"
        )
    if likelihood == "gaussian":
        if targets.shape[1:] != outputs.shape[1:]:
            raise ValueError(
                f"targets must have the outputs' shape (samples, {outputs.shape[1]}), "
                f"got {tuple(targets.shape)}"
            )
        return
    if targets.ndim != 1 or targets.is_floating_point():
        raise ValueError(
            f"targets must be class indices of shape (samples,), "
            f"got {tuple(targets.shape)} of {targets.dtype}"
        )
    low, high = int(targets.min()), int(targets.max())
    if low < 0 or high >= outputs.shape[1]:
        raise ValueError(f"targets must lie in 0 to {outputs.shape[1] - 1}, found {low} to {high}")


def _loss_gradient(outputs: Tensor, targets: Tensor, likelihood: Likelihood) -> Tensor:
    if likelihood == "gaussian":
        return outputs - targets
    one_hot = torch.zeros_like(outputs).scatter_(1, targets.long().unsqueeze(1), 1.0)
    return outputs.softmax(1) - one_hot


def _softmax_factors(probabilities: Tensor) -> Tensor:
    """Cholesky columns of diag(p) - p pᵀ, (classes - 1, samples, classes).

    Column j has the entry d_j = sqrt(p_j q_j / (p_j + q_j)) at j and -d_j p_i / q_j at i > j, with
    q_j the sum of p_i over i > j. Nothing is subtracted, so small numbers keep all their digits
    where the network is confident.
    """
    smallest = torch.finfo(probabilities.dtype).tiny
    from_here = probabilities.flip(1).cumsum(1).flip(1)
    after = from_here[:, 1:]
    diagonal = (probabilities[:, :-1] * after / from_here[:, :-1].clamp(min=smallest)).sqrt()
    below = -probabilities.unsqueeze(1) * (diagonal / after.clamp(min=smallest)).unsqueeze(2)
    columns = below.triu(1)
    columns.diagonal(dim1=1, dim2=2).copy_(diagonal)
    return columns.transpose(0, 1)
