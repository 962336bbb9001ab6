"""Uncertain clients are read from the graph of clusters, ordered, and drawn."""

from dataclasses import replace
from math import log
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from bcfl.drawing import MOST_UNCERTAIN, draw_uncertain_clients, in_style
from experiments.reports.pictures.drawing import inline_svg
from experiments.runs.run_folder import NoRunError, read_memberships


def write(path, rows, groups=()):
    graph = nx.Graph()
    for cluster in range(len(rows[0])):
        graph.add_node(f"cluster-{cluster}", kind="cluster", size=1.0)
    for number, row in enumerate(rows):
        graph.add_node(f"c{number:02d}", kind="client")
        for cluster, probability in enumerate(row):
            if probability:
                graph.add_edge(f"c{number:02d}", f"cluster-{cluster}", probability=probability)
    for number, group in enumerate(groups):
        graph.nodes[f"c{number:02d}"]["group"] = group
    nx.write_graphml(graph, path)
    return read_memberships(path)


def test_the_most_uncertain_come_first_with_their_entropy_in_nats(tmp_path):
    rows = [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0], [0.9, 0, 0.1], [1 / 3, 1 / 3, 1 / 3]]
    found = write(tmp_path / "g.graphml", rows, groups=(2, 0, 0, 1))
    assert found.clients == ("c04", "c01", "c03", "c00")
    expected = [log(3), log(2), -0.9 * log(0.9) - 0.1 * log(0.1), 0]
    assert np.allclose(found.entropies, expected)
    assert found.num_uncertain == 3
    assert found.groups == {"c00": 2, "c01": 0, "c02": 0, "c03": 1}
    assert np.allclose(found.probabilities[2], [0.9, 0, 0.1])


def test_rounding_errors_are_no_uncertainty(tmp_path):
    found = write(tmp_path / "g.graphml", [[1.0000000000000004, 0], [0.9999, 0.0001]])
    assert found.num_uncertain == 0
    assert (found.entropies >= 0).all()


def test_a_limited_number_of_clients_is_drawn_with_bars_of_full_width(tmp_path):
    uncertain = [[0.5 + i / 200, 0.5 - i / 200] for i in range(30)]
    methods = {
        "a": write(tmp_path / "a.graphml", uncertain, groups=[0] * 30),
        "b": write(tmp_path / "b.graphml", [[0.25, 0.75], [1, 0]]),
    }
    svg = inline_svg(lambda: draw_uncertain_clients(methods), "p", "uncertain")
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    bars = [e.get("id") for e in root.iter() if "p-membership-" in e.get("id", "")]
    assert len(bars) == 2 * (MOST_UNCERTAIN + 1)
    texts = {e.text for e in root.iter("text")}
    assert {"0.69", "75% in 1", "25% in 0", "true group 0"} <= texts
    assert "c29" not in texts


def test_bars_are_as_wide_as_their_share_and_labelled_where_that_fits(tmp_path):
    rows = [[0.6, 0.15, 0.25, 0], [0.2502, 0.7494, 0, 0.0004]]
    methods = {"a": write(tmp_path / "a.graphml", rows)}
    with in_style():
        (axes,) = draw_uncertain_clients(methods).axes
    assert [round(bar.get_width(), 4) for bar in axes.patches] == [0.6, 0.2502, 0.15, 0.7494, 0.25]
    entropies = {f"{value:.2f}" for value in methods["a"].entropies}
    assert {text.get_text() for text in axes.texts} - entropies == {
        "60% in 0",
        "25% in 0",
        "75% in 1",
        "25% in 2",
    }


def test_names_with_dollars_are_no_formulas(tmp_path):
    found = write(tmp_path / "g.graphml", [[0.5, 0.5]])
    named = {r"a$\frac$": replace(found, clients=(r"c$\x$",))}
    svg = inline_svg(lambda: draw_uncertain_clients(named), "p", "uncertain")
    assert r">a$\frac$<" in svg
    assert r">c$\x$<" in svg


def test_a_file_of_another_kind_is_named(tmp_path):
    (tmp_path / "g.graphml").write_text("<graphml>")
    with pytest.raises(NoRunError, match=r"g\.graphml"):
        read_memberships(tmp_path / "g.graphml")
