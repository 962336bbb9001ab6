"""The prior of the next round, where rounds revisit the same data, and likelihood sites.

The three memories determine the prior of the next round. Sites keep one likelihood factor per data
holder, so that a new factor can replace the old one (partitioned variational inference: Ashman et
al., 2022).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from posteriors.checks import (
    require_broadcastable,
    require_finite,
    require_float,
    require_non_negative,
)
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior, likelihood_factor

Memory = Literal["replace", "forget", "accumulate"]


def carry(
    memory: Memory, posterior: DiagonalGaussian, base: DiagonalGaussian, decay: float = 0.9
) -> DiagonalGaussian:
    """Turn the posterior of one round into the prior of the next.

    `replace` returns `base` (the same object): the data are revisited, so old factors are dropped.
    `accumulate` returns `posterior` (the same object): correct for new data in every round, but
    revisited data are counted repeatedly. `forget` keeps the posterior's mean and lets its
    precision decay towards that of `base`: decay x posterior + (1 - decay) x base.

    Args:
        memory: Name of the memory.
        posterior: Posterior after this round, (..., parameters).
        base: Prior of the first round, of the same shape.
        decay: Share of the precision that `forget` keeps per round, in [0, 1].

    Raises:
        ValueError: If the memory is unknown, the decay out of range or the shapes differ.
    """
    if memory not in get_args(Memory):
        raise ValueError(f"memory must be one of {', '.join(get_args(Memory))}, got {memory!r}")
    if posterior.mean.shape != base.mean.shape:
        raise ValueError(
            f"base must have the posterior's shape {tuple(posterior.mean.shape)}, "
            f"got {tuple(base.mean.shape)}"
        )
    if not 0 <= decay <= 1:
        raise ValueError(f"decay must be between 0 and 1, got {decay}")
    if memory == "replace":
        return base
    if memory == "accumulate":
        return posterior
    precision = decay * posterior.precision + (1 - decay) * base.precision
    return DiagonalGaussian(posterior.mean, precision)


@dataclass(frozen=True, eq=False)
class Site:
    """The likelihood factor of one data holder, in natural parameters.

    Attributes:
        precision: Curvature, at least 0, broadcastable to `shift`.
        shift: Precision times mean of the factor, (..., parameters).
    """

    precision: Tensor
    shift: Tensor

    def __post_init__(self) -> None:
        """Check dtypes, shapes and ranges."""
        require_float("precision", self.precision)
        require_float("shift", self.shift)
        require_broadcastable("precision", self.precision, self.shift)
        require_finite("shift", self.shift)
        require_non_negative("precision", self.precision)


def site_of(local: LocalPosterior) -> Site:
    """Divide a local posterior by the prior of its training, in the dtype of its mean.

    The precision is the stored curvature; it is not a difference and cannot become negative.

    Raises:
        ValueError: If `local.used` is None.
    """
    if local.used is None:
        raise ValueError("local.used must be the prior of the local training, got None")
    precision, shift = likelihood_factor(local, local.used)
    dtype = local.mean.dtype
    return Site((local.weight * precision).to(dtype), (local.weight * shift).to(dtype))


def damp(old: Site, new: Site, share: float) -> Site:
    """Damped update of a site: (1 - share) x old + share x new, in natural parameters.

    Damping keeps the fixed points of site updates and stabilises parallel updates (Vehtari et al.,
    2020, "Expectation propagation as a way of life", section 4).

    Args:
        old: Factor before the update.
        new: Updated factor, of the same shape.
        share: Step size, above 0 and at most 1; 1 is no damping.

    Raises:
        ValueError: If the share is out of range or the shapes differ.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share}")
    if old.shift.shape != new.shift.shape:
        raise ValueError(
            f"old and new must have shifts of one shape, got {tuple(old.shift.shape)} "
            f"and {tuple(new.shift.shape)}"
        )
    return Site(
        (1 - share) * old.precision + share * new.precision,
        (1 - share) * old.shift + share * new.shift,
    )


def product(base: DiagonalGaussian, sites: Iterable[Site]) -> DiagonalGaussian:
    """Product of a prior and likelihood factors, accumulated in float64.

    With the sites of all data holders but one it is the cavity of that one, as `fuse_without` is of
    local posteriors. Where the total precision is zero the mean of `base` is kept.

    Args:
        base: Prior, (..., parameters).
        sites: Likelihood factors with shifts of the shape of the prior's mean.

    Raises:
        ValueError: If the shift of a site differs in shape from the mean of `base`.
    """
    precision, shift = base.precision.double(), base.shift.double()
    for site in sites:
        _require_same_shape(base, site)
        precision = precision + site.precision.double()
        shift = shift + site.shift.double()
    mean = (shift / precision).where(precision > 0, base.mean.double())
    return DiagonalGaussian(mean.to(base.mean.dtype), precision.to(base.mean.dtype))


def _require_same_shape(gaussian: DiagonalGaussian, site: Site) -> None:
    if site.shift.shape != gaussian.mean.shape:
        raise ValueError(
            f"sites must have shifts of shape {tuple(gaussian.mean.shape)}, "
            f"got {tuple(site.shift.shape)}"
        )
