"""Allocation of class counts to clients."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def largest_remainder(total: int, shares: NDArray[np.float64]) -> Counts:
    """Apportion an integer in proportion to shares by the largest remainder method.

    Ties go to the lower index.

    Args:
        total: number to apportion.
        shares: (parts,) non-negative, with a positive sum.

    Returns:
        (parts,) int64 that sum to `total`.
    """
    exact = total * shares / shares.sum()
    counts: Counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def evenly(total: int, parts: int) -> Counts:
    """Apportion an integer evenly.

    Args:
        total: number to apportion.
        parts: number of parts.

    Returns:
        (parts,) int64 that sum to `total` and differ by at most one, in descending order.
    """
    return largest_remainder(total, np.ones(parts))


def dirichlet_counts(class_sizes: Counts, units: int, alpha: float, random: Generator) -> Counts:
    """Allocate each class to units with shares from a symmetric Dirichlet distribution.

    Args:
        class_sizes: (classes,) number of samples.
        units: number of groups or clients.
        alpha: concentration.
        random: source of randomness.

    Returns:
        (units, classes) int64; columns sum to `class_sizes`.
    """
    shares = random.dirichlet(np.full(units, alpha), size=len(class_sizes))
    columns = [largest_remainder(int(n), p) for n, p in zip(class_sizes, shares, strict=True)]
    return np.stack(columns, axis=1)


def raise_to_minimum(
    counts: Counts, minimum: int, allowed: NDArray[np.bool_] | None = None
) -> Counts:
    """Move samples one by one from the largest clients to those below a minimum.

    The most frequent class of the donor among those allowed for the receiver is moved. Ties go to
    the lower index, so the result is deterministic.

    Args:
        counts: (clients, classes) int64 number of samples.
        minimum: minimum number of samples per client.
        allowed: (clients, classes) bool, classes that a client may hold; all by default.

    Returns:
        (clients, classes) int64 with the same column sums.

    Raises:
        ValueError: there are too few samples, or no client has a spare sample of an allowed class.
    """
    counts = counts.copy()
    may_hold = np.ones(counts.shape, dtype=bool) if allowed is None else allowed
    if counts.sum() < minimum * len(counts):
        raise ValueError(
            f"min_samples={minimum} for {len(counts)} clients require {minimum * len(counts)} "
            f"samples, got {counts.sum()}"
        )
    while (sizes := counts.sum(axis=1)).min() < minimum:
        receiver = int(sizes.argmin())
        useful = np.where(may_hold[receiver], counts, 0)
        can_donate = (sizes > minimum) & (useful.max(axis=1) > 0)
        if not can_donate.any():
            raise ValueError(
                f"min_samples={minimum} cannot be reached: a client has {sizes[receiver]} samples "
                "and no other client can spare one of its classes"
            )
        donor = int(np.where(can_donate, sizes, -1).argmax())
        moved = int(useful[donor].argmax())
        counts[donor, moved] -= 1
        counts[receiver, moved] += 1
    return counts
