"""How many samples of each class go to each client: whole numbers from shares."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def largest_remainder(total: int, shares: NDArray[np.float64]) -> Counts:
    """Whole numbers that sum to `total`, in proportion to `shares`.

    Each gets its share rounded down; what is left goes one by one to the largest fractional parts,
    ties to the lower index.

    Args:
        total: number to divide.
        shares: (parts,) non-negative, with a positive sum.
    """
    exact = total * shares / shares.sum()
    counts: Counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def evenly(total: int, parts: int) -> Counts:
    """`total` divided into (parts,) whole numbers that differ by at most one, larger ones first."""
    return largest_remainder(total, np.ones(parts))


def dirichlet_counts(class_sizes: Counts, units: int, alpha: float, random: Generator) -> Counts:
    """Deal each class to units with shares drawn from a symmetric Dirichlet distribution.

    Args:
        class_sizes: (classes,) samples to deal.
        units: number of groups or clients.
        alpha: concentration; the smaller, the fewer units get most of a class.
        random: source of the draws.

    Returns:
        (units, classes) whole numbers; columns sum to `class_sizes`.
    """
    shares = random.dirichlet(np.full(units, alpha), size=len(class_sizes))
    columns = [largest_remainder(int(n), p) for n, p in zip(class_sizes, shares, strict=True)]
    return np.stack(columns, axis=1)


def raise_to_minimum(
    counts: Counts, minimum: int, allowed: NDArray[np.bool_] | None = None
) -> Counts:
    """Move samples one by one from the largest clients to those below a minimum.

    The class that moves is the one in which the giver is richest, among those that the receiver may
    hold. Ties go to the lower index, so the result is fixed.

    Args:
        counts: (clients, classes) samples; the sum stays the same.
        minimum: samples that every client must reach.
        allowed: (clients, classes) classes that a client may hold; none means all.

    Raises:
        ValueError: there are too few samples, or no client can give one of an allowed class.
    """
    counts = counts.copy()
    may_hold = np.ones(counts.shape, dtype=bool) if allowed is None else allowed
    if counts.sum() < minimum * len(counts):
        raise ValueError(
            f"min_samples={minimum} for {len(counts)} clients takes {minimum * len(counts)} "
            f"samples, got {counts.sum()}"
        )
    while (sizes := counts.sum(axis=1)).min() < minimum:
        receiver = int(sizes.argmin())
        useful = np.where(may_hold[receiver], counts, 0)
        can_give = (sizes > minimum) & (useful.max(axis=1) > 0)
        if not can_give.any():
            raise ValueError(
                f"min_samples={minimum} can't be reached: a client has {sizes[receiver]} samples "
                "and no other client can spare one of its classes"
            )
        giver = int(np.where(can_give, sizes, -1).argmax())
        moved = int(useful[giver].argmax())
        counts[giver, moved] -= 1
        counts[receiver, moved] += 1
    return counts
