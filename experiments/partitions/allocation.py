"""Allocation of class counts to clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from numbers import Real
from operator import itemgetter

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Counts = NDArray[np.int64]
SMALLEST_ALPHA, LARGEST_ALPHA = 1e-3, 1e6


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


def proportioned(class_sizes: Counts, shares: NDArray[np.float64], sizes: Counts) -> Counts:
    """(groups, classes) samples of one client of each group, equally many for all, the most.

    Args:
        class_sizes: (classes,) number of samples.
        shares: (groups, classes) share of each class among a client's samples; rows sum to 1.
        sizes: (groups,) number of clients.
    """
    wanted = sizes @ shares
    fits = np.divide(class_sizes, wanted, out=np.full(len(wanted), np.inf), where=wanted > 0)
    each = int(min(class_sizes.sum() // sizes.sum(), fits.min()))
    while True:
        counts = np.stack([largest_remainder(each, row) for row in shares])
        if (sizes @ counts <= class_sizes).all():
            return counts
        each -= 1


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
    if counts.sum() < minimum * len(counts):
        raise ValueError(
            f"min_samples={minimum} for {len(counts)} clients require {minimum * len(counts)} "
            f"samples, got {counts.sum()}"
        )
    may_hold = np.ones(counts.shape, dtype=bool) if allowed is None else allowed
    held: list[list[int]] = counts.tolist()
    sizes = counts.sum(axis=1).tolist()
    spare = [(-size, client) for client, size in enumerate(sizes) if size > minimum]
    receivers = [(size, client) for client, size in enumerate(sizes) if size < minimum]
    heapify(receivers)
    rows = {client: may_hold[client].tobytes() for _, client in receivers}
    donors = {row: _Donors.of(spare, np.frombuffer(row, dtype=bool)) for row in set(rows.values())}
    while receivers:
        size, receiver = receivers[0]
        donor, moved = donors[rows[receiver]].largest(held, sizes, minimum)
        if donor < 0:
            raise ValueError(
                f"min_samples={minimum} cannot be reached: a client has {size} samples "
                "and no other client can spare one of its classes"
            )
        held[donor][moved] -= 1
        held[receiver][moved] += 1
        sizes[donor] -= 1
        if size + 1 < minimum:
            heapreplace(receivers, (size + 1, receiver))
        else:
            heappop(receivers)
    return np.array(held, dtype=np.int64).reshape(counts.shape)


@dataclass(frozen=True)
class _Donors:
    """Clients that may spare samples of some classes, the largest first.

    Attributes:
        classes: the classes, in ascending order.
        counts_of: their counts, from the counts of all classes.
        heap: (-size, client), where the size is at least the present one.
    """

    classes: list[int]
    counts_of: Callable[[list[int]], Sequence[int]]
    heap: list[tuple[int, int]]

    @classmethod
    def of(cls, spare: list[tuple[int, int]], allowed: NDArray[np.bool_]) -> _Donors:
        """All that may spare a sample, none where no class is allowed."""
        classes = np.flatnonzero(allowed).tolist()
        heap = list(spare) if classes else []
        heapify(heap)
        return cls(classes, itemgetter(*classes, classes[-1]) if classes else list, heap)

    def largest(self, held: list[list[int]], sizes: list[int], minimum: int) -> tuple[int, int]:
        """The largest donor and its most frequent class; -1 and -1 where there is none."""
        heap = self.heap
        while heap:
            size, donor = heap[0]
            if -size > sizes[donor]:
                heapreplace(heap, (-sizes[donor], donor))
                continue
            counts = self.counts_of(held[donor])
            most = max(counts)
            if most and -size > minimum:
                return donor, self.classes[counts.index(most)]
            heappop(heap)
        return -1, -1


def check_alpha(alpha: float, name: str = "alpha") -> None:
    """Check the concentration of a Dirichlet distribution.

    Args:
        alpha: the concentration.
        name: of the argument, for the message.

    Raises:
        ValueError: it is not a number, or out of range.
    """
    if not isinstance(alpha, Real) or not SMALLEST_ALPHA <= alpha <= LARGEST_ALPHA:
        raise ValueError(
            f"{name} must be a number, {SMALLEST_ALPHA:g} to {LARGEST_ALPHA:g}, got {alpha!r}"
        )
