"""The prior of the next round, where rounds revisit the same data."""

from __future__ import annotations

from typing import Literal, get_args

from posteriors.gaussians.gaussian import DiagonalGaussian

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

    Returns:
        The prior, of the same shape.

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
