"""Pooling the running statistics of batch normalisation, buffers that have no posterior."""

from __future__ import annotations

import torch
from torch import Tensor

from posteriors.checks import require_finite, require_float, require_non_negative


def pool_running_statistics(
    means: Tensor, variances: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and variance of several data sets taken together, from those of each.

    The pooled variance includes the spread of the means (law of total variance); averaging the
    variances alone would leave it out.

    Args:
        means: Running means, (data sets, ...), float32 or float64.
        variances: Running variances of the same shape, at least 0.
        counts: Samples (or weights) of each data set, (data sets,), at least 0, not all 0.

    Returns:
        Pooled mean and variance, (...), in the dtype of `means`; accumulated in float64.

    Raises:
        TypeError: If means or variances aren't floating-point tensors.
        ValueError: If shapes differ or values are out of range.
    """
    require_float("means", means)
    require_float("variances", variances)
    if means.ndim == 0 or means.numel() == 0 or means.shape != variances.shape:
        raise ValueError(
            "means and variances must share a shape (data sets, ...), "
            f"got {tuple(means.shape)} and {tuple(variances.shape)}"
        )
    if counts.shape != means.shape[:1]:
        raise ValueError(f"counts must have shape ({len(means)},), got {tuple(counts.shape)}")
    require_finite("means", means)
    require_non_negative("variances", variances)
    require_non_negative("counts", counts)
    total = counts.double().sum()
    if float(total) == 0:
        raise ValueError("counts must not all be 0")
    shares = (counts.double() / total).to(means.device)
    mean = torch.tensordot(shares, means.double(), 1)
    spread = variances.double() + (means.double() - mean).square()
    return mean.to(means.dtype), torch.tensordot(shares, spread, 1).to(means.dtype)
