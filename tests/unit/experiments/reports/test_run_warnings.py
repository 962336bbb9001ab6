"""Sentences above the numbers of a run, from folders written by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bcfl.runtime import FEDERATIONS
from experiments.reports.run_warnings import (
    class_warnings,
    edge_warnings,
    failure_warnings,
    first_seen,
    floor_notes,
    folder_warnings,
    missing_record_warnings,
    notes,
    round_warnings,
    single_partition_notes,
    untrained_methods,
)
from experiments.runs.run_folder import RunFolder
from tests.unit.experiments.reports.conftest import statistic


def test_clients_that_failed_in_every_round_are_named(make_run):
    run = RunFolder.read(make_run(methods=["ifca"], failures=["client-1: NaN", "client-2: late"]))
    (text,) = failure_warnings(run)
    assert "client-1, client-2 (ifca)" in text
    run.rounds["ifca"][0][2]["failures"] = ["client-2: late"]
    run.rounds["ifca"][1][2]["failures"] = ["client-2: late"]
    assert "every round: client-2 (ifca)" in failure_warnings(run)[0]
    run.rounds["ifca"][0][3]["failures"] = []
    run.rounds["ifca"][1][3]["failures"] = []
    assert failure_warnings(run) == []


def test_clients_whose_test_failed_in_every_round_are_trained(make_run):
    failures = [f"client-{c}: late, when tested on view 'test' (crashed)" for c in range(9)]
    run = RunFolder.read(make_run(methods=["ifca"], failures=failures))
    (text,) = failure_warnings(run)
    assert text.startswith("Clients whose test failed in every round: client-0, client-1")
    assert untrained_methods(run) == []


def test_methods_without_any_trained_model_are_named(make_run):
    run = RunFolder.read(make_run(methods=["ifca", "wecfl"], failures=[]))
    assert untrained_methods(run) == []
    for rounds in run.rounds["ifca"].values():
        for entry in rounds:
            entry["failures"] = [f"client-{c}: NaN" for c in range(entry["participants"])]
    assert untrained_methods(run) == ["ifca"]
    run.rounds["ifca"][1][2]["failures"].pop()
    assert untrained_methods(run) == []


def test_rounds_without_records_of_any_seed_are_told(make_run):
    run = RunFolder.read(make_run(methods=["ifca"], seeds=[4, 2]))
    assert missing_record_warnings(run) == []
    run.rounds["ifca"][2][0]["participants"] = None
    assert "records: 1 to 1 of ifca, seed 2. The" in missing_record_warnings(run)[0]


def test_partitions_are_equal_whatever_the_numbers_of_clusters():
    assert first_seen([2, 2, -1, 0]) == first_seen([1, 1, -1, 2]) == [0, 0, -1, 1]


@pytest.mark.parametrize(("second", "told"), [([1, 1, 0], True), ([0, 1, 1], False)])
def test_hypotheses_that_are_one_partition_are_told(second, told):
    kept = [SimpleNamespace(labels=np.array(labels)) for labels in ([0, 0, 1], second)]
    histories = {"bcfl-mht-2": [SimpleNamespace(associations=kept)]}
    run = SimpleNamespace(seed_shown=lambda methods: "seed 3")
    found = single_partition_notes(run, histories)
    assert ["(seed 3)" in note for note in found] == [True] * told


@pytest.mark.parametrize(("counts", "told"), [([[5, 0], [3, 0]], True), ([[5, 1], [3, 0]], False)])
def test_samples_of_one_class_are_told(counts, told):
    """Where the division of the samples is known; else nothing is said."""
    known = SimpleNamespace(class_counts=lambda: np.array(counts))
    found = class_warnings(SimpleNamespace(clients=known))
    assert [text[:28] for text in found] == ["All samples are of one class"] * told
    assert class_warnings(SimpleNamespace(clients=None)) == []


@pytest.mark.parametrize(("best", "told"), [(0.1, True), (1.0, False)])
def test_a_chosen_value_at_an_end_is_told(make_run, best, told):
    run = RunFolder.read(make_run(methods=["ifca"]))
    summary = {
        f"ifca@temperature={value}": {
            "held_out_nll": statistic([0.1 if value == best else 0.5]),
            "held_out_accuracy": statistic([0.9]),
        }
        for value in (0.1, 1.0, 10.0)
    }
    found = edge_warnings(RunFolder(run.path, run.description, summary, run.rounds))
    assert bool(found) == told


def test_curvature_at_the_floor_is_a_note_and_no_warning(make_run):
    run = RunFolder.read(make_run(methods=["ifca"], num_floored=1234))
    assert "1,234 (ifca)" in floor_notes(run)[0]
    assert "tune the prior precision (bcfl uncertainty)" in floor_notes(run)[0]
    known = run.description | {FEDERATIONS: {"ifca": "own:federation"}}
    assert floor_notes(replace(run, description=known)) == floor_notes(run)
    alone = replace(run, description=run.description | {FEDERATIONS: {}})
    assert "tune the prior precision (run.tuned in Python)" in floor_notes(alone)[0]
    assert notes(run, {}) == floor_notes(run)
    assert round_warnings(run) == folder_warnings(run, {}) == []
    assert notes(RunFolder.read(make_run(methods=["ifca"])), {}) == []
