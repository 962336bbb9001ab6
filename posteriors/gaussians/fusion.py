"""Fusion of local posteriors into a server posterior, by four named rules.

`precision_weighted` suits networks trained for a few steps. `exact` counts the shared prior once
and holds if every local mean is the posterior mode under the prior that was sent. `literal` is the
product of Gaussians of "A Bayesian framework for clustered federated learning", equation 8, which
counts the prior once per local posterior. `normalised` is the logarithmic opinion pool (Genest,
1984): the product of posteriors with exponents that sum to 1, as in online Laplace averaging (Liu
et al., 2021); it is no sharper than the sharpest local posterior.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior, likelihood_factor

FusionRule = Literal["precision_weighted", "exact", "literal", "normalised"]

DEFAULT_FLOOR = 1e-3
"""Smallest curvature per sample that `precision_weighted` uses."""

PRIOR_TAKES_PART = ("exact", "literal")
"""Rules by which the mean depends on the prior's precision."""

ROUNDING_STEPS = 8
"""Tolerance, in units of machine epsilon, for fused means outside the hull."""


@dataclass(frozen=True, eq=False)
class Fused:
    """A server posterior with diagnostics of the fusion.

    Attributes:
        posterior: The fused Gaussian, in the dtype of the prior.
        num_floored: Number of curvature entries raised to the floor, over all local posteriors.
        outside_hull: Fraction of parameters whose fused mean lies outside the range of the local
            means (for `exact`, of local means and prior mean) by more than rounding. A large value
            under `exact` indicates that the local means are not posterior modes; use
            `precision_weighted` then.
        num_capped: Number of curvature entries lowered to the cap, over all local posteriors.
        outweighed: Of the parameters with local curvature, the fraction for which all of it is
            below rounding next to the fused precision, so that data no longer move the mean; of
            `exact` and `literal`, whose mean the prior takes part in, 0 for the others.
    """

    posterior: DiagonalGaussian
    num_floored: int
    outside_hull: float
    num_capped: int = 0
    outweighed: float = 0.0


def fuse(
    rule: FusionRule,
    prior: DiagonalGaussian,
    local: Iterable[LocalPosterior],
    used: DiagonalGaussian | None = None,
    *,
    floor: float = DEFAULT_FLOOR,
    cap: float = math.inf,
) -> Fused:
    """Fuse local posteriors into one Gaussian, in a single pass with float64 accumulators.

    With F_j the curvature, m_j the mean and Λ_j = Λ_used + F_j the precision of local posterior j,
    and Λ0, m0 those of the prior:

    - `precision_weighted`: mean Σ F_j m_j / Σ F_j, precision Λ0 + Σ F_j, where F_j is raised to
      `floor` x num_samples and lowered to `cap` x num_samples in both. FedAvg is the case
      F_j = num_samples.
    - `exact`: precision Λ0 + Σ F_j, mean (Λ0 m0 + Σ (Λ_j m_j - Λ_used m_used)) / precision.
    - `literal`: precision Σ Λ_j, mean Σ Λ_j m_j / Σ Λ_j.
    - `normalised`: precision Σ a_j Λ_j, mean Σ a_j Λ_j m_j / Σ a_j Λ_j, with a_j the share of
      local posterior j in the (weighted) samples.

    Where the total precision is zero (flat prior, no curvature) the prior's mean is kept. Without
    a local posterior of positive weight the prior is returned. A scalar curvature gives a scalar
    precision. Precision is at most the square root of the largest number of the prior's dtype:
    `literal`, which multiplies it by the number of members, would overflow where each posterior is
    the next round's prior.

    Args:
        rule: Name of the rule.
        prior: Prior of this round at the server, (..., parameters).
        local: Local posteriors with means of the prior's shape; iterated once.
        used: Prior of local posteriors with `used=None`; by default `prior`.
        floor: Lower bound of the curvature per sample, positive; `precision_weighted` only.
        cap: Upper bound of the curvature per sample, above `floor`; `precision_weighted` only.

    Returns:
        The fused Gaussian with diagnostics.

    Raises:
        ValueError: If the rule is unknown, `floor` is not positive, `cap` is not above `floor` or
            shapes differ.

    References:
        "A Bayesian framework for clustered federated learning", equation 8.

    Example:
        >>> import torch
        >>> from posteriors import DiagonalGaussian, LocalPosterior, fuse
        >>> prior = DiagonalGaussian.isotropic(torch.zeros(1), 1.0)
        >>> local = [
        ...     LocalPosterior(mean=mean, curvature=torch.ones(1), used=prior, num_samples=10)
        ...     for mean in torch.tensor([[1.0], [2.0]])
        ... ]
        >>> fused = fuse("precision_weighted", prior, local)
        >>> fused.posterior.mean, fused.posterior.precision
        (tensor([1.5000]), tensor([3.]))
    """
    _check_options(rule, floor, cap)
    sums = _Sums(prior, rule)
    for posterior in local:
        _check_shape(posterior, prior)
        if posterior.weight > 0:
            precision, shift = _factor(rule, posterior, _sent(posterior, used, prior), floor, cap)
            if rule == "precision_weighted":
                sums.count_bounded(posterior, floor, cap)
            sums.add(precision, shift, posterior, _power(rule, posterior))
    return sums.result()


def fuse_without(
    rule: FusionRule,
    prior: DiagonalGaussian,
    local: Sequence[LocalPosterior],
    left_out: Sequence[Collection[int]],
    used: DiagonalGaussian | None = None,
) -> list[DiagonalGaussian]:
    """Fuse all local posteriors but some, for several choices of those that are left out.

    The cavity of expectation propagation (Minka, 2001): the server posterior divided by the factors
    of one data holder. The natural parameters of all factors are summed once, in float64, and those
    left out are subtracted; the cost is linear in the number of local posteriors.

    Args:
        rule: Name of the rule, see `posteriors.fuse`.
        prior: Prior of this round at the server, (..., parameters).
        local: Local posteriors with means of the prior's shape.
        left_out: For each result, the indices in `local` that do not contribute to it.
        used: Prior of local posteriors with `used=None`; by default `prior`.

    Returns:
        The fused Gaussian of each choice; the prior where nothing is left.

    Raises:
        ValueError: If the rule is unknown or shapes differ.
    """
    _check_options(rule, DEFAULT_FLOOR, math.inf)
    total = _Sums(prior, rule)

    def factor(posterior: LocalPosterior) -> tuple[Tensor, Tensor]:
        sent = _sent(posterior, used, prior)
        return _factor(rule, posterior, sent, DEFAULT_FLOOR, math.inf)

    for posterior in local:
        _check_shape(posterior, prior)
        if posterior.weight > 0:
            total.add(*factor(posterior), posterior, _power(rule, posterior))
    cavities = []
    for indices in left_out:
        left = {index for index, one in enumerate(local) if one.weight > 0} - set(indices)
        if not left:
            cavities.append(prior)
            continue
        rest = total.copy()
        for index in indices:
            if local[index].weight > 0:
                rest.subtract(*factor(local[index]), _power(rule, local[index]))
        cavities.append(rest.result().posterior)
    return cavities


def _check_shape(posterior: LocalPosterior, prior: DiagonalGaussian) -> None:
    if posterior.mean.shape != prior.mean.shape:
        raise ValueError(
            f"local means must have the prior's shape {tuple(prior.mean.shape)}, "
            f"got {tuple(posterior.mean.shape)}"
        )


def _power(rule: FusionRule, posterior: LocalPosterior) -> float:
    """Exponent of a factor."""
    return posterior.weight * (posterior.num_samples if rule == "normalised" else 1)


def _factor(
    rule: FusionRule, posterior: LocalPosterior, sent: DiagonalGaussian, floor: float, cap: float
) -> tuple[Tensor, Tensor]:
    """Precision and shift that a local posterior contributes, float64, without its exponent."""
    if rule == "precision_weighted":
        lowest, highest = floor * posterior.num_samples, cap * posterior.num_samples
        precision = posterior.curvature.double().clamp(min=lowest, max=highest)
        return precision, precision * posterior.mean.double()
    if rule == "exact":
        return likelihood_factor(posterior, sent)
    precision = sent.precision.double() + posterior.curvature.double()
    return precision, precision * posterior.mean.double()


def _check_options(rule: str, floor: float, cap: float) -> None:
    if rule not in get_args(FusionRule):
        raise ValueError(f"rule must be one of {', '.join(get_args(FusionRule))}, got {rule!r}")
    if not (math.isfinite(floor) and floor > 0):
        raise ValueError(f"floor must be positive and finite, got {floor}")
    if not cap > floor:
        raise ValueError(f"cap must be larger than the floor {floor}, got {cap}")


def _sent(
    local: LocalPosterior, used: DiagonalGaussian | None, prior: DiagonalGaussian
) -> DiagonalGaussian:
    return local.used or used or prior


class _Sums:
    """Running sums over the local posteriors of one `fuse` call."""

    def __init__(self, prior: DiagonalGaussian, rule: FusionRule) -> None:
        self.prior, self.rule = prior, rule
        self.precision = torch.zeros((), dtype=torch.float64, device=prior.mean.device)
        self.shift = torch.zeros_like(prior.mean, dtype=torch.float64)
        infinity = torch.full_like(prior.mean, math.inf)
        self.lowest = prior.mean.clone() if rule == "exact" else infinity
        self.highest = prior.mean.clone() if rule == "exact" else -infinity
        self.num_floored = self.num_capped = 0
        self.total_power = 0.0
        self.curvature = torch.zeros_like(self.precision)

    def count_bounded(self, local: LocalPosterior, floor: float, cap: float) -> None:
        repeats = local.mean.numel() // local.curvature.numel()
        self.num_floored += repeats * int((local.curvature < floor * local.num_samples).sum())
        self.num_capped += repeats * int((local.curvature > cap * local.num_samples).sum())

    def copy(self) -> _Sums:
        other = copy(self)
        other.shift = self.shift.clone()
        return other

    def subtract(self, precision: Tensor, shift: Tensor, power: float) -> None:
        self.precision = (self.precision - power * precision).clamp(min=0)
        self.shift.sub_(shift, alpha=power)
        self.total_power -= power

    def add(self, precision: Tensor, shift: Tensor, local: LocalPosterior, power: float) -> None:
        self.precision = self.precision + power * precision
        self.shift.add_(shift, alpha=power)
        self.total_power += power
        if self.rule in PRIOR_TAKES_PART:
            self.curvature = self.curvature + local.weight * local.curvature.double()
        mean = local.mean.to(self.lowest.dtype)
        torch.minimum(self.lowest, mean, out=self.lowest)
        torch.maximum(self.highest, mean, out=self.highest)

    def result(self) -> Fused:
        if self.total_power == 0:
            return Fused(self.prior, 0, 0.0)
        prior_precision, prior_mean = self.prior.precision.double(), self.prior.mean.double()
        if self.rule == "exact":
            self.precision = self.precision + prior_precision
            self.shift += prior_precision * prior_mean
        quotient = self.shift / self.precision
        mean = torch.where(self.precision > 0, quotient, prior_mean).to(self.prior.mean.dtype)
        if self.rule == "precision_weighted":
            self.precision = self.precision + prior_precision
        if self.rule == "normalised":
            self.precision = self.precision / self.total_power
        largest = math.sqrt(torch.finfo(self.prior.mean.dtype).max)
        precision = self.precision.clamp(max=largest).to(self.prior.mean.dtype)
        posterior = DiagonalGaussian(mean, precision)
        outside = self._outside_fraction(mean)
        outweighed = self._outweighed_fraction(precision)
        return Fused(posterior, self.num_floored, outside, self.num_capped, outweighed)

    def _outweighed_fraction(self, precision: Tensor) -> float:
        curvature = self.curvature.expand(precision.shape)
        informed = curvature > 0
        below_rounding = curvature < torch.finfo(precision.dtype).eps * precision.double()
        return float((informed & below_rounding).sum() / informed.sum().clamp(min=1))

    def _outside_fraction(self, mean: Tensor) -> float:
        largest = torch.maximum(self.lowest.abs(), self.highest.abs())
        slack = ROUNDING_STEPS * torch.finfo(mean.dtype).eps * largest
        outside = (mean < self.lowest - slack) | (mean > self.highest + slack)
        return float(outside.double().mean())
