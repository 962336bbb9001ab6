"""Figures of runs: a panel for each, with what the run says; global settings stay."""

import re
from dataclasses import replace

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

from bcfl import Federation, Objective
from bcfl.analysis import (
    plot_association_graph,
    plot_association_reliability,
    plot_cluster_sizes,
    plot_hypothesis_weights,
    plot_reliability,
    plot_uncertain_clients,
    plots,
)
from bcfl.drawing import ClientGraph
from tests.recipes import built

PLOTS = [plot_association_graph, plot_cluster_sizes, plot_hypothesis_weights, plot_reliability]


@pytest.fixture(autouse=True)
def closed():
    pyplot.close("all")
    yield
    pyplot.close("all")


@pytest.fixture
def run_of(linear, clients):
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=3, batch_size=4), temperature=30.0
    )
    return lambda name: Federation(clients, linear, built(name, **settings)).run(1)


@pytest.fixture
def run(run_of):
    return run_of("bcfl-mh-8")


def titles(places):
    return [axes.get_title() or axes.get_title("left") for axes in places]


@pytest.mark.parametrize("plot", PLOTS)
def test_each_run_has_a_panel(plot, run):
    before = dict(mpl.rcParams)
    axes = plot({"mine": run, "yours": run})
    assert titles(axes) == ["mine", "yours"]
    assert titles([plot(run)]) == ["run"]
    assert dict(mpl.rcParams) == before
    assert pyplot.get_fignums() == [1, 2]
    assert pyplot.figure(1) is axes[0].figure
    axes[0].figure.canvas.draw()


@pytest.mark.parametrize("plot", [*PLOTS, plot_uncertain_clients, plot_association_reliability])
def test_signatures_name_types_that_readers_know(plot):
    words = set(re.findall(r"[A-Za-z]\w+", " ".join(map(str, plot.__annotations__.values()))))
    known = {"Run", "Mapping", "str", "Axes", "Sequence", "NDArray", "np", "object_", "None"}
    assert words <= known | {"Any", "bool", "int"}


def test_pyplot_is_given_figures_under_the_settings_of_the_user(run, monkeypatch):
    """Its first import switches notebooks to interactive mode, which a style would undo."""
    seen = []
    monkeypatch.setattr(pyplot, "figure", lambda **_: seen.append(dict(mpl.rcParams)))
    run.plot_cluster_sizes()
    assert seen == [dict(mpl.rcParams)]


def test_reliability_of_a_run_has_the_bins_of_its_sums(run):
    axes = plot_reliability(run)
    places = {round(15 * t.xy[0] - 0.5, 6) for t in axes.texts if t.get_text()}
    filled = np.flatnonzero(sum(sums.bin_counts for sums in run.tested.values()))
    assert places == set(filled.tolist())


@pytest.mark.parametrize("plot", PLOTS)
def test_a_run_draws_on_given_axes(plot, run):
    left, right = Figure().subplots(1, 2)
    assert getattr(run, plot.__name__)(ax=right) is right
    assert titles([left, right]) == ["", "run"]
    assert plot({"mine": run, "yours": run}, [left, right]).tolist() == [left, right]
    left.figure.canvas.draw()
    assert pyplot.get_fignums() == []
    with pytest.raises(ValueError, match="ax must be 2 axes, one for each run, got 1"):
        plot({"mine": run, "yours": run}, left)


@pytest.mark.parametrize("size", [(12, 5), (5, 3), (3, 6)])
@pytest.mark.parametrize("several", [False, True])
def test_the_legend_of_a_graph_on_given_axes_covers_no_client(run, size, several):
    figure = Figure(figsize=size)
    places = figure.subplots(1, 2)
    shown = plot_association_graph({"a": run, "b": run} if several else run, places[: several + 1])
    figure.canvas.draw()
    last = list(np.ravel(shown))[-1]
    legend = last.get_legend().get_window_extent()
    for line in last.lines:
        at = last.transData.transform(np.column_stack(line.get_data()))
        assert (at[:, 1] > legend.y1).all()
    assert legend.y0 >= last.get_window_extent().y0 - 1
    assert len({axes.get_ylim() for axes in np.ravel(shown)}) == 1, "panels have one scale"


@pytest.mark.parametrize("plot", [plot_association_graph, plot_reliability, plot_uncertain_clients])
def test_legends_can_be_left_out(plot, run):
    def legends(**options):
        axes = plot(run, **options)
        return [*axes.figure.legends, *filter(None, [axes.get_legend()])]

    assert legends() or (plot is plot_uncertain_clients and not run.groups)
    assert legends(legend=False) == []
    if plot is plot_association_graph:
        assert len(legends(ax=Figure().subplots())) == 1
        assert legends(ax=Figure().subplots(), legend=False) == []


@pytest.mark.parametrize("plot", [plot_hypothesis_weights, plot_uncertain_clients])
@pytest.mark.parametrize("width", [7, 12])
def test_labels_at_the_right_are_within_given_axes(plot, run, width):
    figure = Figure(figsize=(width, 3))
    left, _ = figure.subplots(1, 2)
    plot(run, left)
    figure.canvas.draw()
    assert left.texts
    for text in left.findobj(Text):
        assert text.get_window_extent().x1 <= left.get_window_extent().x1 + 2


def test_a_single_kind_of_prediction_needs_no_key(run):
    assert all(text.get_text() for text in plot_reliability(run).texts)


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("ax", [3, "a", Figure()], ids=["number", "text", "figure"])
def test_what_is_no_axes_is_refused(plot, run, ax):
    with pytest.raises(TypeError, match=r"ax must be Axes of matplotlib, .*, got "):
        plot(run, ax)


def test_uncertain_clients_are_those_of_high_entropy(run, run_of):
    entropy = np.sort(run.association_entropy())[::-1]
    axes = plot_uncertain_clients(run, Figure().subplots())
    shown = [text.get_text() for text in axes.texts if text.get_text().startswith(("0.", "1."))]
    assert shown == [f"{value:.2f}" for value in entropy[entropy >= 0.056]]
    certain = run_of("bcfl-g")
    hard = replace(certain.hypotheses.best, belief=None)
    hypotheses = replace(certain.hypotheses, hypotheses=(hard,))
    certain = replace(certain, state=replace(certain.state, hypotheses=hypotheses))
    both = plot_uncertain_clients({"mine": run, "certain": certain})
    words = [[text.get_text() for text in axes.texts] for axes in both]
    assert words[1] == [f"none of {len(run.clients)} clients is uncertain"]
    assert set(shown) < set(words[0])


def test_reliability_is_that_of_all_tests(run):
    axes = plot_reliability(run)
    line = axes.lines[1]
    total = sum(sums.num_samples for sums in run.records[-1].evaluations.values())
    bins = plots._tested("run", run)
    assert bins.counts.sum() == total
    assert line.get_ydata().tolist() == bins.accuracy.tolist()
    accuracy = np.average(bins.accuracy, weights=bins.counts)
    assert accuracy == pytest.approx(run.metrics()["accuracy"])
    assert bins.expected_error == pytest.approx(run.metrics()["ece"])


def test_runs_that_have_nothing_to_show_are_refused(run):
    with pytest.raises(ValueError, match="'run' has not"):
        plot_reliability(replace(run, records=(), executor=None))
    with pytest.raises(ValueError, match="at least one run"):
        plot_cluster_sizes({})


@pytest.mark.parametrize("plot", PLOTS)
def test_only_runs_are_drawn(plot, run):
    with pytest.raises(TypeError, match=r"runs must be a Run, or a mapping .*, got a list"):
        plot([run, run])
    with pytest.raises(TypeError, match="got a int for 'mine'"):
        plot({"mine": 3})
    with pytest.raises(TypeError, match=r"got the name \('mine', 0\)"):
        plot({("mine", 0): run})


def test_a_graph_of_a_run_is_the_one_that_its_file_holds(run, tmp_path):
    from experiments.runs.run_folder import read_client_graph

    graph = run.association_graph()
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    read, direct = read_client_graph(tmp_path / "graph.graphml", 3), ClientGraph.of(graph, 3)
    assert (read.groups, read.clusters) == (direct.groups, direct.clusters)
    assert read.edges == direct.edges
    assert read.num_clients == direct.num_clients
