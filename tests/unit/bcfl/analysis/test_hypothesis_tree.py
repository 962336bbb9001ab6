"""The hypothesis tree can be written in every format and read back."""

import json
from io import BytesIO

import networkx as nx
import numpy as np

from bcfl.analysis.graphs import hypothesis_tree
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.history import Proposed, Snapshot


def association(*labels):
    return Association(("a", "b", "c"), np.array(labels), 2)


def two_rounds():
    first = Snapshot(
        round=1,
        log_weights=np.log([0.75, 0.25]),
        associations=(association(0, 0, 1), association(0, 1, 1)),
        parents=((0,), (0,)),
        log_captured_mass=0.0,
        proposals=(Proposed(association(1, 0, 1), 0, "split"),),
    )
    second = Snapshot(
        round=2,
        log_weights=np.array([0.0]),
        associations=(association(1, 0, 1),),
        parents=((2, 1),),
        log_captured_mass=0.0,
    )
    return hypothesis_tree((first, second))


def test_a_proposal_that_won_is_parent_of_what_it_became():
    graph = two_rounds()
    assert set(graph.predecessors("r2h0")) == {"r1p0", "r1h1"}
    assert list(graph.predecessors("r1p0")) == ["r0h0"]
    assert graph.nodes["r1p0"]["kind"] == "split"
    assert graph.nodes["r1h1"]["sizes"] == "1 2"


def test_the_tree_is_the_same_after_graphml_and_is_strict_json():
    graph, file = two_rounds(), BytesIO()
    nx.write_graphml(graph, file)
    assert b"inf" not in file.getvalue().lower()
    file.seek(0)
    again = nx.read_graphml(file)
    assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
    assert set(again.edges) == set(graph.edges)
    json.dumps(nx.node_link_data(graph, edges="edges"), allow_nan=False)


def test_log_weights_are_there_where_there_is_weight():
    weights = dict(two_rounds().nodes(data="log_weight"))
    assert weights["r1p0"] is None
    assert np.isclose(np.exp(weights["r1h0"]), 0.75)


def test_several_starts_are_equally_probable():
    first = Snapshot(
        round=1,
        log_weights=np.log([0.9, 0.1]),
        associations=(association(0, 0, 1), association(0, 1, 1)),
        parents=((1,), (0,)),
        log_captured_mass=0.0,
    )
    graph = hypothesis_tree((first,))
    for name in ("r0h0", "r0h1"):
        assert graph.nodes[name]["weight"] == 0.5
        assert graph.nodes[name]["log_weight"] == np.log(0.5)
