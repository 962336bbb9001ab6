import numpy as np

from bcfl import Association, Hypothesis
from bcfl.analysis.graphs import support_graph


def test_edges_run_from_supporters_with_their_p_values(linear, newborn):
    association = Association(("a", "b", "c", "d"), np.array([0, 1, 1, -1]), 2)
    clusters = (newborn(linear, 0), newborn(linear, 1))
    state = {"supports": [[0, 1, 0.03]]}
    graph = support_graph(
        Hypothesis(clusters=clusters, association=association, state=state), {"a": 1, "b": None}
    )
    supports = [e for e in graph.edges(data=True) if e[2]["kind"] == "support"]
    assert supports == [("cluster 1", "cluster 0", {"kind": "support", "p_value": 0.03})]
    members = [e[:2] for e in graph.edges(data=True) if e[2]["kind"] == "member"]
    assert members == [("a", "cluster 0"), ("b", "cluster 1"), ("c", "cluster 1")]
    assert graph.nodes["cluster 1"] == {"kind": "cluster", "size": 2}
    assert graph.nodes["a"] == {"kind": "client", "group": 1}
    assert graph.nodes["d"] == {"kind": "client"}


def test_a_hypothesis_without_tests_has_no_support(linear, newborn):
    association = Association(("a",), np.array([0]), 1)
    graph = support_graph(Hypothesis(clusters=(newborn(linear),), association=association))
    assert list(graph.edges(data="kind")) == [("a", "cluster 0", "member")]
