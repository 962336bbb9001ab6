"""One comparison of a benchmark."""

from typing import NamedTuple


class Row(NamedTuple):
    """Times are medians in milliseconds, or minima of CPU time; ratio is baseline over ours.

    Attributes:
        name: what was done.
        ours_ms: our time.
        baseline_ms: the baseline's time, measured side by side.
        ratio: baseline over ours.
        limit: what limits ours.
    """

    name: str
    ours_ms: float
    baseline_ms: float
    ratio: float
    limit: str
