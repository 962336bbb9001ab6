"""Reliability diagrams: intervals against scipy, and numbers of samples above their bins."""

import numpy as np
import pytest
from scipy.stats import binomtest

from bcfl.analysis.pairs import pair_reliability
from bcfl.analysis.uncertainty import Reliability, adaptive_reliability, reliability
from bcfl.drawing import draw_association_reliability, draw_reliability, in_style
from bcfl.drawing.reliability import wilson

BINS = Reliability(
    np.array([4, 30, 12_345]), np.array([0.45, 0.75, 1.0]), np.array([0.0, 0.7, 0.99]), 10
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


@pytest.mark.parametrize("bins", [10, 15, 20])
def test_counts_stand_above_the_bins_of_the_data_and_not_on_each_other(bins):
    middles = (np.arange(bins) + 0.5) / bins
    made = Reliability(np.full(bins, 120), middles, middles, bins)
    with in_style():
        figure = draw_reliability({"ifca": {"plug-in": made}})
        figure.draw_without_rendering()
    (axes,) = figure.axes
    texts = [text for text in axes.texts if text.get_text() == "120"]
    np.testing.assert_allclose([text.xy[0] for text in texts], middles)
    places = np.array([text.get_transform().transform((0, 0)) for text in texts])
    turned = np.deg2rad([text.get_rotation() for text in texts])
    sizes = [text.get_fontsize() * figure.dpi / 72 for text in texts]
    assert len(places) == bins
    wide = 0.64 * 3 * sizes[0]
    for one, other, angle in zip(places, places[1:], turned, strict=False):
        step = np.linalg.norm(other - one)
        assert step * np.sin(angle) > 0.75 * sizes[0] or step * np.cos(angle) > wide


def test_bins_know_how_many_there_are():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    targets = np.array([0, 1, 0])
    assert reliability(probabilities, targets).num_bins == 15
    assert reliability(probabilities, targets, 10).num_bins == 10
    assert adaptive_reliability(probabilities, targets, 2).num_bins == 2
    made = pair_reliability([(np.full((3, 3), 0.5), [0, 0, 1])], bins=4)
    (axes,) = draw_association_reliability({"ifca": made}).axes
    assert [text.get_position()[0] for text in axes.texts] == [pytest.approx(2.5 / 4)]


def test_titles_of_panels_with_more_and_fewer_kinds_are_level():
    with in_style():
        figure = draw_reliability({"a": {"x": BINS}, "b": {"x": BINS, "y": BINS}})
        figure.draw_without_rendering()
    heights = {round(axes._left_title.get_window_extent().y0, 3) for axes in figure.axes}
    assert len(heights) == 1
