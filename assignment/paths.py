"""Least paths between all nodes of a graph, by repeated min-plus squaring of its edge costs."""

import numpy as np

from assignment.arrays import FloatArray

MAX_BLOCK = 4_000_000
"""Largest number of path costs held at once (32 MB)."""


def path_levels(graph: FloatArray) -> list[FloatArray]:
    """Least path costs in nats over at most 1, 2, 4, ... edges, by repeated min-plus squaring.

    The last table holds the least cost of any path, provided that no cycle has a negative cost.
    """
    levels, hops = [graph], 1
    while hops < len(graph) - 1:
        least = levels[-1]
        levels.append(_squared(least))
        hops *= 2
    return levels


def _squared(least: FloatArray) -> FloatArray:
    """Min-plus square of a table of path costs, in blocks of rows that bound the memory."""
    rows = max(1, MAX_BLOCK // least.size)
    blocks = [
        np.minimum.reduce(least[start : start + rows, :, None] + least, axis=1)
        for start in range(0, len(least), rows)
    ]
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def shortest_path(levels: list[FloatArray], source: int, target: int) -> list[int]:
    """Nodes of a least path from source to target; each node at most once.

    Midpoints are found level by level, so that cycles of zero cost cannot trap the search, and
    loops are removed.

    Args:
        levels: least path costs of `path_levels`.
        source: first node.
        target: last node.
    """
    first_seen: dict[int, int] = {source: 0}
    path = [source]
    for node in _walk(levels, len(levels) - 1, source, target):
        if node in first_seen:
            for dropped in path[first_seen[node] + 1 :]:
                del first_seen[dropped]
            del path[first_seen[node] + 1 :]
        else:
            first_seen[node] = len(path)
            path.append(node)
    return path


def _walk(levels: list[FloatArray], level: int, source: int, target: int) -> list[int]:
    """Nodes after `source` on a least walk of at most 2**level edges."""
    while level and levels[level - 1][source, target] <= levels[level][source, target]:
        level -= 1
    if level == 0:
        return [target]
    shorter = levels[level - 1]
    middle = int(np.argmin(shorter[source] + shorter[:, target]))
    before = _walk(levels, level - 1, source, middle)
    return before + _walk(levels, level - 1, middle, target)
