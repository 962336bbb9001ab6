"""The first seed of a run is the first that its scenario names."""

from types import SimpleNamespace

import networkx as nx
import pytest

from experiments.reports.report import render
from experiments.reports.uncertainty_page import _seeds_note
from experiments.runs.files import Pair, RunFiles
from experiments.runs.index import read_index
from experiments.runs.run_folder import RunFolder


@pytest.fixture
def write_chances(make_run):
    """Writes a run of seeds 5 and 2, where one client is uncertain with seed 2 alone."""
    folder = make_run(methods=["ifca"], seeds=[5, 2])
    for seed, chance in ((5, 1.0), (2, 0.7)):
        graph = nx.Graph(kind="client-cluster")
        graph.add_node("client-0000", kind="client")
        for cluster, probability in enumerate((chance, 1 - chance)):
            graph.add_node(f"cluster {cluster}", kind="cluster")
            graph.add_edge("client-0000", f"cluster {cluster}", probability=probability)
        nx.write_graphml(graph, RunFiles(folder).of(Pair("ifca", seed)).graph("clusters"))
    return folder


def test_the_first_seed_is_the_first_that_the_scenario_names(make_run):
    run = RunFolder.read(make_run(methods=["ifca", "wecfl"], seeds=[5, 2]))
    assert [run.first_seed(method) for method in run.methods] == [5, 5]
    assert run.seed_shown(run.methods) == "seed 5"
    assert run.first("ifca") == run.rounds["ifca"][5]
    assert run.seeds("ifca") == (2, 5), "rows of series are ascending"
    del run.rounds["wecfl"][5]
    assert run.seed_shown(run.methods) == "first seed of each method"


def test_figures_of_one_seed_are_of_the_one_that_commands_take(make_run):
    folder = make_run(methods=["ifca"], seeds=[5, 2])
    assert read_index(folder).pairs[0].seed == RunFolder.read(folder).first_seed("ifca") == 5
    page = render(RunFolder.read(folder))
    assert "Clusters of the leading hypothesis (seed 5)" in page
    assert "as believed after the last round (seed 5" in page
    assert "seed 2" not in page


def test_uncertain_clients_of_other_seeds_are_told(write_chances):
    run = RunFolder.read(write_chances)
    assert run.uncertain_with_other_seeds(["ifca"]) == {"ifca": {2: 1}}
    assert "some are: 1 client of ifca with seed 2." in render(run)


@pytest.mark.parametrize(
    ("pairs", "shown"),
    [
        ([("ifca", 5), ("wecfl", 5), ("ifca", 2)], "seed 5"),
        ([("ifca", 5), ("wecfl", 2)], "the first seed of each method"),
    ],
)
def test_the_page_on_uncertainty_names_the_seed_of_its_figures(pairs, shown):
    results = [SimpleNamespace(pair=Pair(*pair)) for pair in pairs]
    assert _seeds_note(results) == f"Scores are means over seeds; figures show {shown}."
