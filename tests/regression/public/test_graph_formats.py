"""Graphs come back from every format with their attributes, which are plain finite numbers or text.

Reported to neighbouring projects: NaN and infinity that cannot be read again, and numpy's numbers
that cannot be written.
"""

import io
import math

import networkx as nx
import pytest

FORMATS = {
    "graphml": (nx.write_graphml, nx.read_graphml),
    "gexf": (nx.write_gexf, nx.read_gexf),
    "gml": (nx.write_gml, nx.read_gml),
}
GRAPHS = {
    "association_graph": "ifca",
    "client_cluster_graph": "bcfl-mh-3",
    "hypothesis_tree": "bcfl-mht-4",
    "support_graph": "faacl",
}


@pytest.fixture(scope="module")
def runs():
    return {}


@pytest.fixture
def graph(runs, clients, mlp, federation):
    def of(kind):
        name = GRAPHS[kind]
        if name not in runs:
            runs[name] = federation(clients(4), mlp(), name, client_fraction=0.75).run(rounds=3)
        return getattr(runs[name], kind)()

    return of


def attributes(graph):
    yield from graph.graph.values()
    for _, facts in graph.nodes(data=True):
        yield from facts.values()
    for *_, facts in graph.edges(data=True):
        yield from facts.values()


@pytest.mark.parametrize("kind", GRAPHS)
def test_attributes_are_plain_and_finite(graph, kind):
    found = list(attributes(graph(kind)))
    assert found
    assert {type(value) for value in found} <= {int, float, str}
    assert all(math.isfinite(value) for value in found if isinstance(value, float))


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", FORMATS)
def test_graphs_come_back_from_a_format(graph, kind, name):
    write, read = FORMATS[name]
    given, file = graph(kind), io.BytesIO()
    write(given, file)
    file.seek(0)
    again = read(file)
    assert set(again) == set(given)
    assert again.number_of_edges() == given.number_of_edges()
    for node, facts in given.nodes(data=True):
        for key, value in facts.items():
            assert again.nodes[node][key] == value
