"""Where numbers begin and end, and whether some seem to be of another scale than others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SMALL_SCALE = 16
"""Whole numbers up to this are a scale of their own, such as truth values or 16 grey levels."""
ROUNDING = 1e-6
"""What arithmetic in float32 may add to numbers from 0 to 1."""


class Span(NamedTuple):
    """The lowest and the highest of some numbers."""

    low: float
    high: float

    @property
    def is_unit(self) -> bool:
        """Whether numbers are from 0 to at most 1, and not all 0."""
        return self.low >= -ROUNDING and 0 < self.high <= 1 + ROUNDING

    @property
    def is_large(self) -> bool:
        """Whether numbers are from 0 to far more than 1."""
        return self.low >= -ROUNDING and self.high > SMALL_SCALE


def span_of(values: NDArray[Any]) -> Span:
    """The lowest and the highest of finite numbers.

    Args:
        values: at least one.
    """
    return Span(float(np.min(values)), float(np.max(values)))


def seem_to_differ(spans: Iterable[Span]) -> bool:
    """Whether some inputs are from 0 to 1, and others from 0 to far more.

    Args:
        spans: of inputs of several parts.
    """
    every = [*spans]
    return any(span.is_unit for span in every) and any(span.is_large for span in every)
