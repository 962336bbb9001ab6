"""Who supports whom, from a run of FAACL to a file and a page."""

import json

import networkx as nx
import pytest
import tomli_w
from typer.testing import CliRunner

from bcfl import Federation, methods
from experiments import datasets, models, partitions
from experiments.cli import app

SCENARIO = {
    "name": "noisy",
    "methods": ["wecfl", "faacl"],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "noisy", "clients": 4, "samples_per_client": 60},
    "model": {"name": "mlp", "hidden": [8]},
    "training": {"local_steps": 4},
    "federation": {"rounds": 3, "num_clusters": 2},
}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("support")
    (place / "noisy.toml").write_text(tomli_w.dumps(SCENARIO))
    result = invoke("run", place / "noisy.toml", "--out", place / "run")
    assert result.exit_code == 0, result.output
    return place / "run"


@pytest.mark.parametrize("form", ["graphml", "json", "gexf"])
def test_the_graph_is_written_in_every_format(folder, form, tmp_path):
    options = ("--method", "faacl", "--kind", "support", "--format", form)
    path = tmp_path / "graph"
    assert invoke("graph", folder, *options, "--out", path).exit_code == 0
    readers = {
        "graphml": nx.read_graphml,
        "gexf": nx.read_gexf,
        "json": lambda file: nx.node_link_graph(json.loads(file.read_text()), edges="edges"),
    }
    graph = readers[form](path)
    assert graph.is_directed()
    members = [edge for edge in graph.edges(data="kind") if edge[2] == "member"]
    assert len(members) == 4
    supports = [edge for edge in graph.edges(data=True) if edge[2]["kind"] == "support"]
    assert all(0 <= data["p_value"] <= 0.1 for _, _, data in supports)


def test_other_methods_have_no_support_graph(folder):
    result = invoke("graph", folder, "--method", "wecfl", "--kind", "support")
    assert result.exit_code == 2
    assert "wecfl, seed 0 has no support graph: its method doesn't test" in result.output


def test_the_report_shows_the_support_graph(folder):
    page = (folder / "report.html").read_text()
    assert "Support between clusters, by method" in page
    assert "Clustering temperature over rounds" in page


def test_a_run_in_python_gives_the_same_graph(folder):
    data = datasets.load("optdigits")
    part = partitions.noisy(data, clients=4, samples_per_client=60, seed=0)
    federation = Federation(part, models.mlp(64, 8, 10), methods.build("faacl"))
    run = federation.run(2)
    assert run.tests_support
    graph = run.support_graph()
    assert {n for n, kind in graph.nodes(data="kind") if kind == "client"} == set(run.clients)
    assert not Federation(part, models.mlp(64, 8, 10), methods.build("wecfl")).run(1).tests_support
