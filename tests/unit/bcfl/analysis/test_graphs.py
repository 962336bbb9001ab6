import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.special import entr

from bcfl import Association, Federation, Objective
from bcfl.analysis.graphs import accumulated_association_graph, hypothesis_tree
from bcfl.hypotheses.history import Snapshot, accumulated_co_association
from tests.recipes import built

NAMES = ("a", "b", "c", "d")


def snapshot(round, *rows, soft=None):
    """Hypotheses given as (weight, labels, parents)."""
    return Snapshot(
        round=round,
        log_weights=np.log([w for w, _, _ in rows]),
        associations=tuple(Association(NAMES, np.array(labels), 2, soft) for _, labels, _ in rows),
        parents=tuple(parents for _, _, parents in rows),
        log_captured_mass=0.0,
    )


HISTORY = (
    snapshot(1, (0.75, [0, 0, 1, -1], (0,)), (0.25, [1, 0, 1, -1], (0,))),
    snapshot(2, (1.0, [0, 0, 1, 1], (0, 1))),
)


def test_co_association_is_averaged_over_rounds_and_hypotheses():
    matrix = accumulated_co_association(HISTORY).toarray()
    wanted = np.zeros((4, 4))
    for one in HISTORY:
        for weight, association in zip(np.exp(one.log_weights), one.associations, strict=True):
            p = association.serving
            wanted += weight * p @ p.T / len(HISTORY)
    np.testing.assert_allclose(matrix, np.triu(wanted, 1))


def test_soft_associations_share_by_their_probabilities():
    soft = np.array([[0.5, 0.5], [0.2, 0.8], [1, 0], [0, 0]])
    matrix = accumulated_co_association(
        [snapshot(1, (1.0, [0, 1, 0, -1], (0,)), soft=soft)]
    ).toarray()
    assert matrix[0, 1] == pytest.approx(0.5 * 0.2 + 0.5 * 0.8)
    assert matrix[1, 2] == pytest.approx(0.2)
    assert matrix[3].tolist() == matrix[:, 3].tolist() == [0] * 4


def test_the_association_graph_has_its_documented_attributes():
    graph = accumulated_association_graph(HISTORY, {"a": 3, "b": None})
    assert dict(graph.nodes["a"]) == {"cluster": 0, "group": 3}
    assert dict(graph.nodes["b"]) == {"cluster": 0}
    probabilities = {(u, v): d["probability"] for u, v, d in graph.edges(data=True)}
    wanted = {("a", "b"): (0.75 + 1) / 2, ("a", "c"): 0.25 / 2, ("c", "d"): 0.5}
    assert probabilities == pytest.approx(wanted)
    assert all(d["weight"] == d["probability"] for _, _, d in graph.edges(data=True))
    assert graph.graph["edges"] == "mean over rounds 1 to 2"
    above = accumulated_association_graph(HISTORY, min_probability=0.5)
    assert set(above.edges) == {("a", "b"), ("c", "d")}


@pytest.mark.parametrize("bound", [-0.1, 1.1])
def test_a_bound_on_probabilities_lies_between_0_and_1(bound):
    with pytest.raises(ValueError, match=f"min_probability must be .* 0 and 1, got {bound}"):
        accumulated_association_graph(HISTORY, min_probability=bound)


def test_no_round_is_no_history():
    with pytest.raises(ValueError, match="at least one round, got none"):
        accumulated_association_graph([])


def test_edges_are_what_is_believed_after_the_last_round(run):
    graph = run.association_graph()
    together = run.co_association()
    assert graph.graph["edges"] == "belief after round 3"
    for (i, one), (j, other) in itertools.combinations(enumerate(run.clients), 2):
        edge = graph.get_edge_data(one, other, {"probability": 0.0, "weight": 0.0})
        assert edge["probability"] == edge["weight"] == pytest.approx(together[i, j], abs=1e-12)
    bipartite = run.client_cluster_graph()
    assert bipartite.graph["edges"] == "belief after round 3"
    assert all(d["weight"] == d["probability"] for _, _, d in bipartite.edges(data=True))


def test_bounds_on_beliefs_lie_between_0_and_1(run):
    with pytest.raises(ValueError, match="min_probability must be a number between 0 and 1, got 2"):
        run.association_graph(2)
    assert all(p >= 0.4 for *_, p in run.association_graph(0.4).edges(data="probability"))


def test_the_tree_joins_hypotheses_to_those_they_came_from():
    tree = hypothesis_tree(HISTORY)
    assert set(tree.edges) == {
        ("r0h0", "r1h0"),
        ("r0h0", "r1h1"),
        ("r1h0", "r2h0"),
        ("r1h1", "r2h0"),
    }
    assert (tree.nodes["r0h0"]["weight"], tree.nodes["r0h0"]["log_weight"]) == (1.0, 0.0)
    node = tree.nodes["r1h1"]
    assert node["weight"] == pytest.approx(0.25)
    assert node["log_weight"] == pytest.approx(np.log(0.25))
    assert (node["round"], node["rank"], node["sizes"], node["non_empty"]) == (1, 1, "1 2", 2)


@pytest.fixture(params=["bcfl-mh-3", "bcfl-c-3", "bcfl-mht-4", "fedavg"])
def run(request, linear, clients):
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=2, batch_size=4), temperature=4.0
    )
    method = built(request.param, **settings)
    return Federation(clients, linear, method, client_fraction=0.75).run(3)


def test_graphs_of_a_run_have_a_node_for_everything(run):
    clusters = run.hypotheses.best.association.num_clusters
    bipartite = run.client_cluster_graph()
    kinds = nx.get_node_attributes(bipartite, "kind")
    assert sorted(kinds.values()) == ["client"] * 4 + ["cluster"] * clusters
    sizes = nx.get_node_attributes(bipartite, "size")
    assert sum(sizes.values()) == pytest.approx(run.association_probabilities().sum())
    assert {bipartite.nodes[c]["group"] for c in run.clients} == {0, 1}
    assert nx.is_directed_acyclic_graph(run.hypothesis_tree())
    assert set(run.association_graph().nodes) == set(run.clients)


def test_nodes_of_the_tree_say_how_sure_a_hypothesis_is(run):
    tree = run.hypothesis_tree()
    for rank, hypothesis in enumerate(run.hypotheses):
        expected = entr(hypothesis.membership).sum(axis=1).mean()
        assert tree.nodes[f"r3h{rank}"]["association_entropy"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("write", "read", "ending"),
    [(nx.write_graphml, nx.read_graphml, "graphml"), (nx.write_gexf, nx.read_gexf, "gexf")],
)
def test_graphs_survive_other_programs_formats(run, tmp_path, write, read, ending):
    graphs = (
        run.association_graph(),
        run.accumulated_association_graph(),
        run.client_cluster_graph(),
        run.hypothesis_tree(),
    )
    for graph in graphs:
        write(graph, tmp_path / f"graph.{ending}")
        again = read(tmp_path / f"graph.{ending}")
        assert set(again.nodes) == set(graph.nodes)
        assert {frozenset(e) for e in again.edges} == {frozenset(e) for e in graph.edges}
        for node, (key, value) in itertools.chain.from_iterable(
            zip(itertools.repeat(n), d.items(), strict=False) for n, d in graph.nodes(data=True)
        ):
            assert again.nodes[node][key] == (pytest.approx(value) if _number(value) else value)
        for u, v, data in graph.edges(data=True):
            for key, value in data.items():
                assert again.edges[u, v][key] == pytest.approx(value)


def _number(value):
    return isinstance(value, int | float)
