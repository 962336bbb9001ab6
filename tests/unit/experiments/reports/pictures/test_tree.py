"""Lines of ancestry read from a tree by hand, and the tree drawn from them."""

from xml.etree import ElementTree

import networkx as nx
import pytest

from bcfl.drawing import HypothesisLineage, longest_first
from experiments.reports.pictures.drawing import inline_svg
from experiments.reports.pictures.tree import MOST_LINES, Layout, draw_trees, packed
from experiments.runs.run_folder import NoRunError, read_lineage

ROUNDS = {
    "r0h0": ("start", 1.0, ()),
    "r1h0": ("hypothesis", 0.6, ("r0h0",)),
    "r1h1": ("hypothesis", 0.4, ("r0h0",)),
    "r2h0": ("hypothesis", 1.0, ("r1h0", "r1h1")),
    "r2p0": ("split", 0.0, ("r1h0",)),
    "r2p1": ("death", 0.0, ("r1h0",)),
    "r3h0": ("hypothesis", 0.7, ("r2p0",)),
    "r3h1": ("hypothesis", 0.3, ("r2h0",)),
    "r4h0": ("hypothesis", 0.9, ("r3h0",)),
    "r4h1": ("hypothesis", 0.1, ("r3h0",)),
    "r4p0": ("birth", 0.0, ("r3h0",)),
}


def tree(rounds):
    graph = nx.DiGraph()
    for name, (kind, weight, parents) in rounds.items():
        number, rank = name[1:].replace("p", "h").split("h")
        graph.add_node(name, round=int(number), rank=int(rank), weight=weight, kind=kind)
        graph.add_edges_from((parent, name) for parent in parents)
    return graph


def chain(rounds, branches):
    """A hypothesis that goes on, and in each round one more that dies at once."""
    nodes = {"r0h0": ("start", 1.0, ())}
    for number in range(1, rounds + 1):
        parents = (f"r{number - 1}h0",)
        nodes[f"r{number}h0"] = ("hypothesis", 0.9, parents)
        for rank in range(1, branches + 1):
            nodes[f"r{number}h{rank}"] = ("hypothesis", 0.1 / branches, parents)
    return HypothesisLineage.of(tree(nodes))


@pytest.fixture
def ancestry():
    return HypothesisLineage.of(tree(ROUNDS))


def names(line):
    return [node.name for node in line.nodes]


def test_lines_follow_the_longest_survival_and_proposals_begin_their_own(ancestry):
    lines = {line.first.name: (names(line), line.lineage) for line in ancestry.lines()}
    assert lines == {
        "r0h0": (["r0h0", "r1h0", "r2h0", "r3h1"], "r0h0"),
        "r1h1": (["r1h1"], "r0h0"),
        "r2p0": (["r2p0", "r3h0", "r4h0"], "r2p0"),
        "r4h1": (["r4h1"], "r2p0"),
    }


def test_proposals_are_accepted_rejected_or_undecided(ancestry):
    assert [node.name for node in ancestry.accepted_proposals] == ["r2p0"]
    assert [node.name for node in ancestry.rejected_proposals] == ["r2p1"]
    assert (ancestry.num_rounds, ancestry.max_hypotheses) == (4, 2)


def test_parents_come_before_children_when_the_longest_come_first(ancestry):
    ordered = longest_first(ancestry.lines(), ancestry.survival())
    place = {name: row for row, line in enumerate(ordered) for name in names(line)}
    for line in ordered:
        assert all(place[parent] < place[line.first.name] for parent in line.first.parents)


@pytest.mark.parametrize("branches", [1, 4])
def test_lines_in_one_row_never_overlap(branches):
    ancestry = chain(12, branches)
    lines = longest_first(ancestry.lines(), ancestry.survival())
    rows = packed(lines)
    spans = [
        (row, number)
        for row, line in zip(rows, lines, strict=True)
        for number in range(line.first.round, line.last.round + 1)
    ]
    assert len(spans) == len(set(spans))
    assert max(rows) == branches


def drawn(layout):
    svg = inline_svg(lambda: draw_trees({"m": layout}), "t", "tree")
    return [e.get("id") for e in ElementTree.fromstring(svg.replace("xlink:href", "href")).iter()]


def test_all_events_are_drawn(ancestry):
    ids = drawn(Layout.of(ancestry))
    assert {f"t-line-m-{line.first.name}" for line in ancestry.lines()} <= set(ids)
    assert [name for name in ids if name and name.startswith("t-join")] == ["t-join-m-r2h0"]
    assert [name for name in ids if name and name.startswith("t-accepted")] == ["t-accepted-m-r2p0"]
    branches = {name for name in ids if name and name.startswith("t-branch")}
    assert branches == {f"t-branch-m-{name}" for name in ("r1h1", "r2p0", "r4h1")}
    assert "t-rejected-m" in ids


def test_nodes_at_the_edge_are_drawn_whole(ancestry):
    (axes,) = draw_trees({"m": Layout.of(ancestry)}).axes
    nodes = [line for line in axes.lines if str(line.get_gid()).startswith(("node-", "accepted-"))]
    assert min(line.get_xdata()[0] for line in nodes) == axes.get_xlim()[0]
    assert not any(line.get_clip_on() for line in nodes)


def test_a_single_rejected_proposal_is_one(ancestry):
    svg = inline_svg(lambda: draw_trees({"m": Layout.of(ancestry)}), "t", "tree")
    assert ">1 proposal rejected<" in svg


def test_long_runs_are_drawn_with_fewer_nodes_and_report_omitted_lines():
    ancestry = chain(100, 3)
    layout = Layout.of(ancestry)
    assert layout.left_out == len(ancestry.lines()) - MOST_LINES > 0
    nodes = [name for name in drawn(layout) if name and name.startswith("t-node-m-")]
    assert len(nodes) < 100
    assert {"t-node-m-r0h0", "t-node-m-r100h0"} <= set(nodes)


@pytest.mark.parametrize("text", ["", "<graphml>", "<a/>"])
def test_a_file_that_is_no_tree_is_named(tmp_path, text):
    path = tmp_path / "hypotheses.graphml"
    path.write_text(text)
    with pytest.raises(NoRunError, match=r"hypotheses\.graphml"):
        read_lineage(path)
