import numpy as np
import pytest

from experiments.reports.pictures.trust import (
    draw_calibration,
    draw_entropies,
    draw_ood_scores,
    draw_risk,
    histogram,
    score_edges,
)
from experiments.reports.pictures.trust_tips import calibration_tips, histogram_tips, risk_tips
from experiments.scores.client_predictions import ClientPredictions, UncertaintyScores

P = np.array([[0.95, 0.05], [0.92, 0.08], [0.3, 0.7], [0.45, 0.55]])


def predictions(targets, num_ood=3):
    own, other = np.array([0.1, 0.2, 0.6, 0.69]), np.full(num_ood, 0.65)
    own_scores, ood, noise = (
        UncertaintyScores(values, np.zeros_like(values), values) for values in (own, other, own + 1)
    )
    return ClientPredictions(
        probabilities=P, targets=np.array(targets), own=own_scores, ood=ood, noise=noise
    )


def test_lines_hold_the_bins_and_the_risks():
    methods = {"ifca": {"plug-in": predictions([0, 1, 1, 1])}}
    (axes,) = draw_calibration(methods).axes
    diagonal, line = axes.get_lines()
    np.testing.assert_allclose(line.get_xdata(), [0.55, 0.7, 0.935])
    np.testing.assert_allclose(line.get_ydata(), [1, 1, 0.5])
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    (axes,) = draw_risk(methods).axes
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [25, 50, 75, 100])
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), [0, 50, 100 / 3, 25])


def test_a_predictive_has_one_style_for_all_methods_and_one_legend_entry():
    one = predictions([0, 0, 1, 1])
    figure = draw_risk({"ifca": {"plug-in": one}, "bcfl-g": {"linearised": one, "plug-in": one}})
    first, second = figure.axes
    colours = [{line.get_label(): line.get_color() for line in a.get_lines()} for a in figure.axes]
    assert colours[0]["plug-in"] == colours[1]["plug-in"] != colours[1]["linearised"]
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()] == ["plug-in", "linearised"]
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("ifca", "bcfl-g")


@pytest.mark.parametrize(("num_ood", "drawn"), [(3, 3), (0, 2)])
def test_missing_samples_are_not_drawn(num_ood, drawn):
    figure = draw_entropies({"ifca": {"plug-in": predictions([0, 0, 1, 1], num_ood)}})
    assert len(figure.legends[0].get_texts()) == drawn


def test_scores_beyond_the_bins_count_in_the_outermost():
    found = {"own": np.array([0.0, 1.0]), "other groups": np.array([2.0]), "noise": np.array([9.0])}
    edges = score_edges(found)
    assert (edges[0], edges[-1]) == (pytest.approx(0.01), 2.0)
    assert histogram(found["noise"], edges).tolist() == [0.0] * 19 + [100.0]
    assert histogram(found["own"], edges).sum() == 100
    (axes,) = draw_ood_scores({"ifca": {"plug-in": predictions([0, 0, 1, 1])}}).axes
    assert len(axes.get_legend_handles_labels()[1]) == 3


def test_each_bin_tells_its_values():
    methods = {"ifca": {"plug-in": predictions([0, 1, 1, 1])}}
    told = calibration_tips(methods)
    assert set(told) == {"band-ifca-6", "band-ifca-7", "band-ifca-10"}
    title, line = told["band-ifca-10"].splitlines()
    assert title == "ifca, confidence 0.9 to 1.0"
    assert line == "plug-in  50.0% right (9.5% to 90.5%) of 2"
    told = risk_tips(methods)
    assert told["band-ifca-10"].endswith("most confident 50% of samples\nplug-in  50.00% wrong")
    told = histogram_tips("ifca", {"own": np.array([0.1, 0.9])}, np.array([0.0, 0.5, 1.0]))
    assert told["band-ifca-2"] == "ifca, 0.50 to 1.00 nats\nown  50.0 %"
