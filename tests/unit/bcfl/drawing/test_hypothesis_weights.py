"""Ribbons fill every round, in the colours of lineages."""

from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from bcfl.drawing import NARROW, WIDTH, HypothesisLineage, in_style
from bcfl.drawing.hypothesis_weights import (
    START_COLOUR,
    draw_hypothesis_weights,
    lineage_colours,
    lineage_name,
    weights,
)
from experiments.reports.pictures.drawing import inline_svg


def ancestry(starts, takes_over):
    """Two hypotheses for five rounds; from round 3 on the first comes from a proposal."""
    graph = nx.DiGraph()
    for index in range(starts):
        graph.add_node(f"r0h{index}", round=0, rank=index, weight=1.0, kind="start")
    for number in range(1, 6):
        for rank, weight in enumerate((0.75, 0.25)):
            name = f"r{number}h{rank}"
            graph.add_node(name, round=number, rank=rank, weight=weight, kind="hypothesis")
            parent = f"r{number - 1}h{min(rank, starts - 1) if number == 1 else rank}"
            if takes_over and (number, rank) == (3, 0):
                graph.add_node("r2p0", round=2, rank=0, weight=0.0, kind="split")
                graph.add_edge("r1h0", "r2p0")
                parent = "r2p0"
            graph.add_edge(parent, name)
    return HypothesisLineage.of(graph)


@pytest.mark.parametrize("starts", [1, 2])
@pytest.mark.parametrize("takes_over", [False, True])
def test_ribbons_fill_every_round(starts, takes_over):
    found = ancestry(starts, takes_over)
    table = weights(found.lines(), found.num_rounds)
    assert np.allclose(table.sum(axis=0), 1.0)
    assert sorted(table[:, -1][table[:, -1] > 0]) == [0.25, 0.75]


def test_lineages_have_colours_and_names_of_their_own():
    one, two = ancestry(1, True), ancestry(2, True)
    assert lineage_colours(ancestry(1, False)) == {"r0h0": START_COLOUR}
    assert lineage_colours(one)["r0h0"] == START_COLOUR != lineage_colours(one)["r2p0"]
    assert len(set(lineage_colours(two).values())) == 3
    assert lineage_name(one, "r2p0") == "split of round 2"
    assert (lineage_name(one, "r0h0"), lineage_name(two, "r0h1")) == ("the start", "start 2")


def test_each_line_is_a_ribbon_and_lineages_are_labelled():
    found = ancestry(1, True)
    svg = inline_svg(lambda: draw_hypothesis_weights({"m": found}), "p", "ribbons")
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    ribbons = {e.get("id") for e in root.iter() if "ribbon-" in e.get("id", "")}
    assert ribbons == {f"p-ribbon-m-{line.first.name}" for line in found.lines()}
    texts = {e.text for e in root.iter("text")}
    assert {"75% · from split of round 2", "25% · from the start"} <= texts


@pytest.mark.parametrize("dpi", [70, 100, 200])
@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_labels_lie_within_the_figure_whatever_its_resolution(dpi, width):
    with in_style():
        figure = draw_hypothesis_weights({"bcfl-mht-4": ancestry(1, True)}, width=width)
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        ends = [text.get_window_extent().x1 for place in figure.axes for text in place.texts]
    assert len(ends) == 2
    assert max(ends) < figure.bbox.x1
