"""Texts at the pointer are those of the element that was drawn for them."""

import html
import json
import re
from itertools import chain

import networkx as nx
import numpy as np

from bcfl.drawing import HypothesisLineage
from experiments.reports.pictures import bubbles, cost, likeness, moves, neighbours, tree
from experiments.reports.pictures.drawing import Cells, ClientText, inline_svg, with_tips


def tipped(draw, tips):
    """Tips by id of their element; every tip that was made is in the figure."""
    svg = with_tips(inline_svg(draw, "f", "title"), "f", tips)
    found = dict(re.findall(r'id="f-([^"]*)"(?: data-client="[^"]*")? data-tip="([^"]*)"', svg))
    assert svg.count("data-tip=") == sum(
        1 if isinstance(tip, str | ClientText) else len(tip) for tip in tips.values()
    )
    return svg, {name: text.split("&#10;") for name, text in found.items()}


def test_a_heat_map_tells_its_cells():
    cosines = np.array([[1.0, -0.126], [-0.126, 1.0]])
    cells = Cells(["a, cluster 0", 'the "b"'], cosines, "cosine")
    maps = {"ifca": (cosines, [0, 1])}
    drawn = inline_svg(lambda: likeness.draw_clusters(maps), "f", "title")
    svg = with_tips(drawn, "f", {"likeness-ifca": cells})
    (text,) = re.findall(r'<image [^>]*id="f-likeness-ifca" data-cells="([^"]*)"', svg)
    assert json.loads(html.unescape(text)) == {
        "names": ["a, cluster 0", 'the "b"'],
        "values": [["1.00", "−0.13"], ["−0.13", "1.00"]],
        "what": "cosine",
    }


def test_lines_of_moves_tell_when_clients_came_to_their_clusters():
    labels = np.array([[0, -1], [0, 1], [1, 1], [0, 1]])
    one = moves.Moves(labels, 2, [3, None])
    shown = {"ifca": one}
    svg, found = tipped(lambda: moves.draw_moves(shown), moves.move_tips(shown, ["a", "b"]))
    assert re.findall('id="f-move-ifca-." data-client="(.)"', svg) == ["a", "b"]
    came = ["from round 1: cluster 0", "from round 3: cluster 1", "from round 4: cluster 0"]
    assert found == {
        "move-ifca-0": ["a", "true group 3", "ifca", *came],
        "move-ifca-1": ["b", "ifca", "from round 2: cluster 1"],
    }


def test_clients_that_move_often_list_the_last_moves():
    labels = np.arange(40).reshape(40, 1) % 2
    often = moves.Moves(labels, 2, [None])
    text = moves.move_tips({"ifca": often}, ["a"])["move-ifca-0"].text.split("\n")
    assert text[:3] == ["a", "ifca", "..."]
    assert text[-1] == "from round 40: cluster 1"
    assert len(text) == 3 + moves.LISTED


def test_points_of_local_models_tell_their_client_and_cluster():
    places = np.random.default_rng(0).normal(size=(6, 3))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    one = neighbours.Neighbourhood(2, distances, np.array([0, 0, 0, 1, 1, 1]))
    groups, names = [[3, None, 3, 1, 1, 1]], ["abcdef"]
    svg, _ = tipped(
        lambda: neighbours.draw_neighbours([one], groups, 2),
        neighbours.neighbour_tips([one], names, groups),
    )
    tips = dict(re.findall(r'data-client="(.)" data-tip="([^"]*)"', svg))
    assert "".join(tips) == "defacb", "group by group, and within one by name"
    assert tips["a"].split("&#10;") == ["a", "round 2: cluster 0", "true group 3"]
    assert tips["b"].split("&#10;") == ["b", "round 2: cluster 0"]


def test_circles_tell_the_samples_of_their_client_and_class():
    counts = np.array([[5, 0, 1], [0, 7, 0], [1200, 2, 2]])
    groups, names = [1, 0, 1], ["a", "b", "c"]
    svg, _ = tipped(
        lambda: bubbles.draw_partition(counts, groups),
        bubbles.partition_tips(counts, groups, names),
    )
    tips = re.findall(r'data-client="(.)" data-tip="([^"]*)"', svg)
    assert [client for client, _ in tips] == ["b", "a", "a", "c", "c", "c"]
    assert tips[1][1].split("&#10;") == ["a", "class 0: 5 samples"]
    assert tips[2][1].split("&#10;") == ["a", "class 2: 1 sample"]
    assert tips[3][1].split("&#10;") == ["c", "class 0: 1,200 samples"]
    named = bubbles.partition_tips(counts, groups, names, ["cat", "dog", "fox"])
    assert ("a", "a\nclass fox: 1 sample") in chain(*named.values())
    columns = [float(x) for x in re.findall(r'data-tip="[^"]*" d="M ([\d.]+)', svg)]
    assert columns == sorted(columns), "drawn from the left to the right, client by client"


def test_nodes_of_trees_tell_their_weight():
    graph = nx.DiGraph()
    for name, number, rank, weight, kind in (
        ("r0h0", 0, 0, 1.0, "start"),
        ("r1h0", 1, 0, 0.75, "hypothesis"),
        ("r1h1", 1, 1, 0.25, "hypothesis"),
        ("r1p0", 1, 0, 0.0, "split"),
        ("r2h0", 2, 0, 0.6, "hypothesis"),
        ("r2h1", 2, 1, 0.4, "hypothesis"),
    ):
        graph.add_node(name, round=number, rank=rank, weight=weight, kind=kind)
    for parent, children in {
        "r0h0": ("r1h0", "r1h1", "r1p0"),
        "r1h0": ("r2h0",),
        "r1h1": ("r2h0",),
        "r1p0": ("r2h1",),
    }.items():
        graph.add_edges_from((parent, child) for child in children)
    layouts = {"mht": tree.Layout.of(HypothesisLineage.of(graph))}
    _, found = tipped(lambda: tree.draw_trees(layouts), tree.tree_tips(layouts))
    assert found["node-mht-r1h1"] == ["mht, round 1", "rank 2: weight 25.0%", "from the start"]
    assert found["node-mht-r0h0"] == ["mht, at the start", "the start: weight 100.0%"]
    assert found["node-mht-r2h0"][-1] == "merged from 2"
    assert found["accepted-mht-r1p0"] == ["mht, round 1", "accepted: split"]


def test_bars_tell_their_cost():
    costs = {
        name: cost.Cost(
            bytes_down=factor * 4e6,
            bytes_up=factor * 1e6,
            trainings_requested=factor * 2000.0,
            trainings_run=50.0,
            seconds={"train": 3.0 * factor, "server": 0.25},
        )
        for name, factor in (("one", 1), ("two", 2))
    }
    _, found = tipped(lambda: cost.draw_cost(costs), cost.cost_tips(costs))
    assert found["bar-two-to-clients"] == ["two", "8 MB per round to clients"]
    assert found["bar-one-requested"] == ["one", "2,000 local trainings requested"]
    assert found["bar-one-run"] == ["one", "50 local trainings run after deduplication"]
    assert found["bar-two-train"] == ["two", "train: 6 s"]
