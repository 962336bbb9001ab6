"""Runs of streams: samples and true groups are those of the time step of the last round."""

import networkx as nx
import numpy as np
import pytest

import experiments
from bcfl.analysis import pairs, rows
from experiments.commands import explain
from experiments.config.scenario import from_table
from experiments.launch import start
from experiments.reports.client_report import read_history
from experiments.reports.uncertainty_page import render as uncertainty_page
from experiments.reports.uncertainty_results import Query, as_json, evaluate_run, step_notes
from experiments.runs.files import Pair, RunFiles
from experiments.runs.plan import Plan
from experiments.runs.restore import restore
from experiments.runs.runner import Experiment, RunCallbacks

STEPS = 3
TABLE = {
    "name": "drift",
    "methods": ["fedavg", "ifca"],
    "seeds": [1],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "stream", "clients": 6, "steps": STEPS, "order": "multi-task"},
    "model": {"name": "mlp", "hidden": [8]},
    "training": {"local_steps": 8},
    "federation": {"rounds": 6, "num_clusters": 2},
}
IFCA = Pair("ifca", 1)


@pytest.fixture(scope="module")
def stream():
    return Experiment(scenario=from_table(TABLE), device="cpu").partition(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    plan = Plan(
        scenario=from_table(TABLE), device="cpu", threads=1, jobs=1, command="bcfl run drift"
    )
    start(plan, path, Experiment(scenario=plan.scenario, device="cpu"), RunCallbacks())
    return path


@pytest.fixture(scope="module")
def results(folder):
    return list(evaluate_run(folder, Query(methods=["ifca"], predictives=(), tunes=False)))


def at(stream, step):
    return {client: concepts[step] for client, concepts in stream.concepts.items()}


def test_the_concepts_of_the_stream_change(stream):
    assert at(stream, 0) != at(stream, STEPS - 1)
    assert (stream.num_groups, stream.num_steps) == (2, STEPS)


def test_a_restored_run_has_the_groups_of_its_last_round(folder, stream):
    run = restore(folder, IFCA).run
    assert run.groups == at(stream, STEPS - 1)
    assert run.groups_after(2) == at(stream, 0)
    assert run.metrics()["ari"] == rows.read(RunFiles(folder).of(IFCA).metrics)[-1]["ari"]
    assert experiments.open(folder)["ifca", 1].run.groups == at(stream, STEPS - 1)


def test_rounds_know_their_step(folder):
    logged = rows.read(RunFiles(folder).of(IFCA).metrics)
    assert [row["time_step"] for row in logged] == [0, 0, 1, 1, 2, 2]


def test_the_graph_has_the_groups_of_the_last_round(folder, stream):
    nodes = nx.read_graphml(RunFiles(folder).of(IFCA).graph("clients")).nodes
    assert {name: nodes[name]["group"] for name in nodes} == at(stream, STEPS - 1)
    assert {name: nodes[name]["concepts"] for name in nodes} == {
        client: " ".join(map(str, concepts)) for client, concepts in stream.concepts.items()
    }


def test_predictions_are_scored_on_the_samples_of_the_last_step(folder, results):
    (result,) = results
    run = restore(folder, IFCA).run
    assert (result.time_step, result.num_steps) == (STEPS - 1, STEPS)
    accuracy = result.parts["all"]["accuracy"]
    found = sum(np.trace(sums.confusion) for sums in run.tested.values())
    samples = sum(sums.num_samples for sums in run.tested.values())
    # A third of the test samples is set aside for tuning, also where nothing is tuned.
    assert abs(accuracy - found / samples) < 0.1
    assert len(result.predictions.targets) == pytest.approx(2 / 3 * samples, abs=6)


def test_pairs_are_scored_by_the_groups_of_the_last_step(folder, stream, results):
    run, last = restore(folder, IFCA).run, at(stream, STEPS - 1)
    groups = [last[client] for client in run.clients]
    expected = pairs.association_scores(run.co_association(), groups)
    assert results[0].association == expected


def test_the_page_of_uncertainty_says_which_step(results, plain_figures):
    (note,) = step_notes(results)
    assert note == (
        "scored on the test samples and the true groups of time step 2, that of the last round "
        "(there are 3, counted from 0)"
    )
    assert note[1:] in uncertainty_page("drift", results)
    assert '"time_step": 2' in as_json(results)


def test_a_client_is_told_with_the_groups_of_the_last_step(folder, stream):
    history, last = read_history(folder, IFCA), at(stream, STEPS - 1)
    (report,) = history.client_reports(["client-00"])
    assert report.group == last["client-00"]
    assert {peer.client: peer.group for peer in report.peers} == {
        client: group for client, group in last.items() if client != "client-00"
    }
    assert set(report.num_samples) == {"train", "test"}
    assert sum(report.num_samples.values()) == report.classes.sum()
    text = "\n".join(explain.in_words(report, history))
    concepts = " ".join(map(str, stream.concepts["client-00"]))
    assert f"true group {report.group} at time step 2 (over steps: {concepts})" in text
    assert f"on its {len(stream[0].views['test:2'])} test samples of time step 2" in text
