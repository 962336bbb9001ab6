"""Runs of streams: samples and true groups are those of the time step of the last round."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import experiments
from bcfl.analysis import pairs, rows
from bcfl.drawing import Palette
from bcfl.hypotheses import LeadingClusters
from experiments.commands import explain
from experiments.config.scenario import from_table
from experiments.reports import local_models
from experiments.reports.client_report import read_history
from experiments.reports.compare import aligned, read_results
from experiments.reports.compare_page import render as compare_page
from experiments.reports.galleries import client_gallery
from experiments.reports.galleries.gallery import all_pictures
from experiments.reports.galleries.score_gallery import score_pictures
from experiments.reports.pictures.time_steps import Stream, TimeSteps
from experiments.reports.report import headline, render
from experiments.reports.results_table import agreement_table, results_table
from experiments.reports.round_history import FirstStates, history
from experiments.reports.uncertainty_page import render as uncertainty_page
from experiments.reports.uncertainty_results import Query, as_json, evaluate_run, step_notes
from experiments.runs.files import Pair, RunFiles
from experiments.runs.restore import restore
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import Experiment
from experiments.runs.selection import choose

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
def folder(run_of):
    return run_of(TABLE)


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
        "scored on the test samples and the concepts of time step 2, that of the last round "
        "(there are 3, counted from 0)"
    )
    assert note[1:] in uncertainty_page("drift", results)
    assert '"time_step": 2' in as_json(results)


def test_a_client_is_told_with_the_groups_of_the_last_step(folder, stream):
    told, last = read_history(folder, IFCA), at(stream, STEPS - 1)
    (report,) = told.client_reports(["client-00"])
    assert report.group == last["client-00"]
    assert {peer.client: peer.group for peer in report.peers} == {
        client: group for client, group in last.items() if client != "client-00"
    }
    assert set(report.num_samples) == {"train", "test"}
    assert sum(report.num_samples.values()) == report.classes.sum()
    text = "\n".join(explain.in_words(report, told))
    assert next(explain.overview([report])).startswith("client     concept  cluster")
    concepts = " ".join(map(str, stream.concepts["client-00"]))
    assert f"concept {report.group} at time step 2 (over steps: {concepts})" in text
    assert f"on its {len(stream[0].views['test:2'])} test samples of time step 2" in text


@pytest.fixture(scope="module")
def read(folder):
    return RunFolder.read(folder)


def test_the_report_begins_with_time_steps_and_concepts(read):
    assert headline(read) == (
        "2 methods on optdigits, 6 clients, 3 time steps, 2 concepts, 6 rounds, 1 seed."
    )


def test_a_run_folder_knows_the_concepts_of_each_round(read, stream):
    found = Stream.of(read)
    assert found.concepts == stream.concepts
    assert found.steps == TimeSteps((0, 0, 1, 1, 2, 2))
    assert found.steps.begins == [3, 5]
    clients = sorted(stream.concepts)
    for number, groups in enumerate(found.groups(clients)):
        assert dict(zip(clients, groups, strict=True)) == at(stream, number // 2)


def test_methods_whose_steps_differ_have_no_marks(read):
    other = [{**row, "time_step": 0} for row in read.first("ifca")]
    mixed = replace(read, rounds={**read.rounds, "ifca": {1: other}})
    assert TimeSteps.of(mixed).begins == []
    short = replace(read, rounds={**read.rounds, "ifca": {1: read.first("ifca")[:3]}})
    assert TimeSteps.of(short).begins == [3, 5]


def test_figures_over_rounds_say_where_a_time_step_begins(read, plain_figures):
    pictures = all_pictures(read, FirstStates.of(read).states)
    for name in ("curves", "scores", "sizes", "moves"):
        assert pictures[name].caption.endswith(" Thin vertical lines: a time step begins.")
    assert "Shapes: concepts at the time step of the round" in pictures["graph"].caption
    assert "late or repeated changes" not in pictures["moves"].caption
    assert "Concepts are those of the last time step." in pictures["pairs"].caption
    assert pictures["partition"].title == (
        "Samples of 6 clients by class, and their concepts at 3 time steps"
    )
    assert "over all time steps" in pictures["partition"].caption


def test_lines_of_clients_have_the_concept_of_the_round(read, stream):
    state = FirstStates.of(read).states["ifca"]
    clients, known = state.hypotheses.best.association.clients, LeadingClusters.of(state.history)
    lines = client_gallery._moves_of(known, clients, at(stream, STEPS - 1), Stream.of(read))
    assert [dict(zip(clients, row, strict=True)) for row in lines.over_rounds] == [
        at(stream, number // 2) for number in range(6)
    ]


def test_moves_have_no_lane_beyond_the_last_cluster_that_a_client_visits():
    labels, numbers = np.array([[0, 2], [1, 2]]), [np.arange(4), np.arange(5)]
    clusters, clients = LeadingClusters(labels, 5, numbers), ("client-0", "client-1")
    assert client_gallery._moves_of(clusters, clients, {}, Stream()).num_clusters == 3


def test_a_concept_has_one_colour_in_all_figures(read, stream):
    last = max(at(stream, STEPS - 1).values())
    all_one = {client: (0, last, last) for client in stream.concepts}
    one = Stream(all_one, TimeSteps.of(read))
    state = FirstStates.of(read).states["ifca"]
    clients, known = state.hypotheses.best.association.clients, LeadingClusters.of(state.history)
    lines = client_gallery._moves_of(known, clients, dict.fromkeys(all_one, last), one)
    assert lines.palette == one.palette == Palette((0, last), change=True)
    palettes = [Stream.of(read).palette]
    palettes += [graph.palette for graph in read.graphs(2).values()]
    palettes += [rows.palette for rows in read.memberships().values()]
    assert palettes == [Palette((0, 1), change=True)] * 5


def test_the_slider_knows_the_concepts_of_each_round(read, stream):
    known = history(read, FirstStates.of(read).histories)
    assert (known["rounds"], known["steps"]) == ([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, 2])
    assert known["concepts"] == stream.concepts
    assert known["size"] == pytest.approx(8.5 / 8, abs=1e-3)


def test_concepts_are_shown_where_the_data_are_not_at_hand(read, plain_figures, monkeypatch):
    monkeypatch.setattr(RunFolder, "clients", None)
    picture = client_gallery.client_pictures(replace(read), {})["partition"]
    assert picture.title == "Concepts of 6 clients at 3 time steps"
    assert "circle" not in picture.caption


def test_a_saved_run_is_told_as_a_stream(stream, tmp_path, plain_figures):
    scenario = from_table(TABLE)
    federation = Experiment(scenario=scenario, device="cpu").federation(IFCA)
    folder = federation.run(3).save(tmp_path / "run", name="ifca")
    saved = RunFolder.read(folder)
    assert "6 clients, 3 time steps, 2 concepts" in headline(saved)
    assert Stream.of(saved).concepts == stream.concepts


@pytest.fixture(scope="module")
def sequential(run_of):
    return run_of({**TABLE, "partition": {"kind": "stream", "clients": 4, "steps": STEPS}})


def test_nothing_is_ranked_by_agreement_where_all_clients_share_a_concept(
    sequential, plain_figures
):
    run = RunFolder.read(sequential)
    assert run.one_group
    assert np.isfinite(run.series("ifca", "ari")).all()
    shown = run.without_vain_scores()
    assert not np.isfinite(shown.series("ifca", "ari")).any()
    assert (agreement_table(run) is None, agreement_table(shown)) == (False, None)
    assert "ARI" not in [column.title for column in results_table(shown).columns]
    curves = score_pictures(shown, "concept")["curves"].caption
    assert "At each time step all clients are of one concept, so that agreement such as" in curves
    graph = all_pictures(shown, {})["graph"].caption
    assert "that no edge joins: a concept that all clients share is split" in graph
    assert "Clients lie in circles by their concept at the last time step" in graph
    assert "ARI" not in aligned(read_results(sequential)[1])[0]
    _, note = choose(sequential, None, None)
    assert note.startswith("best method of seed 1 by accuracy; --method shows ")
    concepts = client_gallery.client_pictures(run, {})["partition"].caption
    assert concepts.startswith("Look for rows that differ: there, all clients change")
    page = compare_page([sequential])
    assert "early" not in page


def test_runs_whose_time_steps_begin_in_other_rounds_say_so_at_the_curves(folder, run_of):
    said = "Time steps begin in other rounds in one run than in another"
    assert said not in compare_page([folder, folder])
    slower = run_of({**TABLE, "methods": ["fedavg"], "federation": {"rounds": STEPS}})
    assert said in compare_page([folder, slower])


def test_pages_of_a_stream_call_the_groups_of_clients_concepts(folder, sequential, plain_figures):
    for page in (
        render(RunFolder.read(folder)),
        compare_page([folder]),
        compare_page([sequential]),
    ):
        assert "true group" not in page.partition("<script>")[0].lower()
        assert "concept" in page
    pictures = all_pictures(RunFolder.read(folder), FirstStates.of(RunFolder.read(folder)).states)
    assert "recover the concepts early" in pictures["curves"].caption
    assert "true group" not in " ".join(p.caption + p.title for p in pictures.values() if p)


def test_a_run_of_several_concepts_at_a_time_is_scored_by_agreement(folder, read):
    assert not read.one_group
    assert read.without_vain_scores() is read
    assert "ARI" in aligned(read_results(folder)[1])[0]
    assert choose(folder, None, None)[1].startswith("best method of seed 1 by ARI and accuracy")


def test_local_models_are_trained_on_the_samples_of_their_step(folder):
    found = local_models.record(Experiment(scenario=from_table(TABLE), device="cpu"), IFCA, 4)
    snapshots = restore(folder, IFCA).state.history
    assert found.clusters.tolist() == [s.associations[0].labels.tolist() for s in snapshots[:4]]
