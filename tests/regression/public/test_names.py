"""Names and groups of clients survive graphs, files and checkpoints, or are refused beforehand.

Reported to neighbouring projects: GraphML that cannot be read again, and types that it cannot hold.
"""

import io

import networkx as nx
import numpy as np
import pytest

from bcfl import checkpoint

PLAIN = ["b", "c"]


def refused(call, about):
    """The federation that a call makes, or None where its error names what it is about."""
    try:
        return call()
    except UnicodeError:
        raise
    except (TypeError, ValueError) as error:
        words = str(error)
    assert str(about) in words or repr(about) in words
    return None


def kinds(graph):
    found = [kind for _, kind in graph.nodes(data="kind")]
    return {kind: found.count(kind) for kind in set(found)}


def test_a_client_named_like_a_cluster_stays_a_client(clients, mlp, federation):
    names = ["cluster-0", "cluster-1", "c2", "c3"]
    run = federation(clients(4, names=names), mlp(), "ifca").run(rounds=1)
    graph = run.client_cluster_graph()
    assert kinds(graph) == {"client": 4, "cluster": 2}
    assert not list(nx.selfloop_edges(graph))


def test_a_client_named_like_a_supporter_stays_a_client(clients, mlp, federation):
    names = ["cluster 0", "cluster 1", "c2", "c3"]
    run = federation(clients(4, names=names), mlp(), "faacl").run(rounds=1)
    graph = run.support_graph()
    clusters = len(run.hypotheses.best.association.sizes)
    assert kinds(graph) == {"client": 4, "cluster": clusters}


@pytest.mark.parametrize("name", ["fedavg", "centralised"])
def test_a_client_named_like_the_pool_of_all_samples(clients, mlp, federation, name):
    names = ["(all samples)", *PLAIN]
    ready = refused(lambda: federation(clients(3, names=names), mlp(), name), "(all samples)")
    assert ready is None or set(ready.run(rounds=1).clients) == set(names)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a\x00b", id="nul"),
        pytest.param("\x1b[31msite", id="escape"),
        pytest.param("a\x0cb", id="form-feed"),
        pytest.param("a\ufffeb", id="no-character"),
        pytest.param(" a ", id="spaces"),
        pytest.param("a\nb", id="line-feed"),
        pytest.param("", id="empty"),
        pytest.param("\N{HOSPITAL}", id="astral"),
        pytest.param("<b>&\"'", id="markup"),
    ],
)
@pytest.mark.parametrize("kind", ["association_graph", "client_cluster_graph"])
def test_names_come_back_from_graphml(clients, mlp, federation, name, kind):
    ready = refused(lambda: federation(clients(3, names=[name, *PLAIN]), mlp(), "ifca"), name)
    if ready is None:
        return
    graph, file = getattr(ready.run(rounds=1), kind)(), io.BytesIO()
    nx.write_graphml(graph, file)
    file.seek(0)
    assert set(nx.read_graphml(file)) == set(graph)


def test_a_name_that_utf8_cannot_hold_is_refused_by_name(clients, mlp, federation):
    """As `os.fsdecode` gives for a folder in another encoding."""
    name = "caf\udce9"
    ready = refused(lambda: federation(clients(3, names=[name, *PLAIN]), mlp(), "ifca"), name)
    assert ready is None or name in ready.run(rounds=1).clients


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["a", "b", "c"], id="text"),
        pytest.param(list(np.array(["a", "b", "c"])), id="numpy-text"),
        pytest.param([0, 1, 2], id="int"),
        pytest.param(list(np.arange(3)), id="numpy-int"),
        pytest.param([("a", 1), ("b", 2), ("c", 3)], id="tuple"),
    ],
)
def test_names_come_back_from_a_checkpoint(clients, mlp, federation, parameters, tmp_path, names):
    prepared = refused(lambda: federation(clients(3, names=names), mlp(), "ifca"), names[0])
    if prepared is None:
        return
    half = prepared.run(rounds=1, planned_rounds=2).state
    state = checkpoint.load(checkpoint.save(half, tmp_path))
    assert state.hypotheses.best.association.clients == half.hypotheses.best.association.clients
    assert list(state.client_info) == list(half.client_info)
    ends = [parameters(prepared.run(rounds=2, state=one)) for one in (state, half)]
    assert (ends[0] == ends[1]).all()


def test_names_of_several_types_are_refused(clients, mlp, federation):
    with pytest.raises(TypeError):
        federation(clients(3, names=[1, "b", 3]), mlp(), "ifca")


@pytest.mark.parametrize(
    "group",
    [
        *(0, np.int64(1), -1, True),
        "north",
        1.5,
        float("nan"),
    ],
    ids=str,
)
def test_groups_are_kept_in_graphs_or_refused_beforehand(clients, mlp, federation, group):
    def prepared():
        return federation(clients(3, groups=[group, 0, 0]), mlp(), "ifca")

    ready = refused(prepared, group)
    if ready is not None:
        graph = ready.run(rounds=1).association_graph()
        assert graph.nodes["c0"]["group"] == group


@pytest.mark.parametrize(
    "group",
    [
        3,
        2**40,
    ],
)
def test_groups_are_kept_in_tables_or_refused_beforehand(clients, mlp, federation, group):
    pytest.importorskip("xarray")
    ready = refused(lambda: federation(clients(3, groups=[group, 0, 0]), mlp(), "ifca"), group)
    if ready is not None:
        assert ready.run(rounds=1).to_xarray()["group"].values.tolist() == [group, 0, 0]
