"""One ranking from the rankings of several parents: the M-best search of multi-hypothesis trackers.

Each round a tracker keeps the best associations over all its hypotheses (Reid, 1979; Cox and
Hingorani, 1996). Their rankings are lazy, so that only what may enter the result is enumerated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf
from typing import TypeVar

from assignment.arrays import FloatArray

Ranked = TypeVar("Ranked")


def merge_rankings(
    rankings: Sequence[Iterable[tuple[float, Ranked]]],
    least_costs: Sequence[float] | FloatArray | None = None,
    max_excess: float = inf,
) -> Iterator[tuple[float, int, Ranked]]:
    """Merge the rankings of several parents into one, lazily, in ascending order of cost.

    This is the M-best search over parents for rankings of any origin. A ranking is read no further
    than the merged one, and not at all before its least cost is reached. On ties the lower parent
    comes first.

    Args:
        rankings: for each parent, pairs of a cost in nats and a ranked item, in ascending order of
            cost. Costs of all parents share one reference and include the parents' own weights.
        least_costs: lower bounds on each parent's costs in nats, shape (parents,); +inf leaves a
            parent out. None: no bounds are known.
        max_excess: stop beyond this cost above the first, in nats.

    Yields:
        Cost in nats, index of the parent, and the item.
    """
    bounds = [-inf] * len(rankings) if least_costs is None else least_costs
    opened: dict[int, Iterator[tuple[float, Ranked]]] = {}
    # one entry per parent: its next cost and item, or its least cost while it is not opened
    heap: list[tuple[float, int, tuple[Ranked] | None]]
    heap = [(float(bound), parent, None) for parent, bound in enumerate(bounds) if bound < inf]
    heapify(heap)
    limit: float | None = None
    while heap:
        cost, parent, entry = heappop(heap)
        if entry is None:
            opened[parent] = iter(rankings[parent])
        else:
            limit = cost + max_excess if limit is None else limit
            if cost > limit:
                return
            yield cost, parent, entry[0]
        for following, item in islice(opened[parent], 1):
            heappush(heap, (following, parent, (item,)))
