"""Reliability diagrams: intervals against scipy, and numbers of samples above their bins."""

import numpy as np
import pytest
from scipy.stats import binomtest

from bcfl.analysis.uncertainty import Reliability
from bcfl.drawing import draw_reliability
from bcfl.drawing.reliability import wilson

BINS = Reliability(
    np.array([4, 30, 12_345]), np.array([0.45, 0.75, 1.0]), np.array([0.0, 0.7, 0.99])
)


@pytest.mark.parametrize(("right", "count"), [(0, 1), (0, 7), (3, 4), (50, 50), (700, 1000)])
def test_intervals_are_those_of_wilson(right, count):
    low, high = wilson(np.array([right / count]), np.array([count]))
    wanted = binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert (low[0], high[0]) == pytest.approx((wanted.low, wanted.high), abs=1e-6)


def test_bars_span_the_intervals_and_counts_stand_above_their_bins():
    figure = draw_reliability({"ifca": {"plug-in": BINS}})
    (axes,) = figure.axes
    (bars,) = axes.containers
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends.T, wilson(BINS.accuracy, BINS.counts))
    counts = {text.get_text(): text.xy[0] for text in axes.texts if text.get_text()}
    assert counts == {
        "4": pytest.approx(0.45),
        "30": pytest.approx(0.75),
        "12k": pytest.approx(0.95),
    }
