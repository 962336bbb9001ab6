"""Ranking by splitting: enumerate all associations in order, given the two best of any part.

Each part of the solution space has a known best association; a solver finds its second best. Once
that is returned, the part is split on one client that moved: either the client stays, and the best
is unchanged, or it leaves its cluster, and the former second best is now the best. Each of the two
subproblems needs one second best more, so M associations cost 2 M second bests. This is the
partition of Murty (1968) in the binary form of Chegireddy and Hamacher (1987).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

import numpy as np

from assignment.arrays import IntArray
from assignment.ranked import Deviations

PartT = TypeVar("PartT")


@dataclass(frozen=True, eq=False)
class Second(Generic[PartT]):
    """The second best association of a part and the two subproblems it splits the part into.

    Attributes:
        labels: cluster of every client, int64 of shape (clients,).
        excess: cost above the best association of the whole problem in nats.
        staying: the subproblem in which the client split on keeps its cluster in the part's best.
        leaving: the subproblem in which it does not; `labels` is the best there.
    """

    labels: IntArray
    excess: float
    staying: PartT
    leaving: PartT


def ascending(
    whole: Callable[[], PartT], second_best: Callable[[PartT], Second[PartT] | None], best: IntArray
) -> Iterator[tuple[float, Deviations]]:
    """All associations in ascending order of excess, lazily, starting with the best.

    Args:
        whole: makes the part that holds all associations; called when a second is requested.
        second_best: finds the second best of a part, or None if it holds only one.
        best: cluster of every client in the best association, int64 of shape (clients,).

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it.
    """
    yield 0.0, ()
    tie_break = count()
    heap: list[tuple[float, int, Second[PartT]]] = []

    def push(part: PartT, least_excess: float) -> None:
        second = second_best(part)
        if second is not None:
            heappush(heap, (max(least_excess, second.excess), next(tie_break), second))

    push(whole(), 0.0)
    while heap:
        excess, _, second = heappop(heap)
        moved = np.flatnonzero(second.labels != best)
        yield excess, tuple(zip(moved.tolist(), second.labels[moved].tolist(), strict=True))
        push(second.staying, excess)
        push(second.leaving, excess)
