"""True groups of a stream after a round: everywhere those of its time step."""

import json
import re

import networkx as nx
import numpy as np
import pytest

from bcfl import ClientData, Federation, View, methods
from bcfl.analysis import TrueGroups, groups_after, loggers, pairs, rows, write_graphs
from bcfl.analysis.true_groups import number_of_groups
from experiments import datasets, models, partitions

CONCEPTS = {"a": (0, 1), "b": (0, 0), "c": (1, 1), "d": (1, 0)}
"""Pairs at step 0 are ab and cd, at step 1 ac and bd."""


def drawn(count, concept, random):
    x = random.normal(size=(count, 2))
    return View.from_arrays(x, (x[:, 0] > 0).astype(int) ^ concept)


@pytest.fixture(scope="module")
def clients():
    random = np.random.default_rng(0)
    return [
        ClientData(
            name,
            {
                f"{kind}:{step}" if step else kind: drawn(40, concept, random)
                for step, concept in enumerate(concepts)
                for kind in ("train", "test")
            },
            concepts[0],
        )
        for name, concepts in CONCEPTS.items()
    ]


@pytest.fixture(scope="module")
def federation(clients):
    model, method = models.mlp((2,), 4, 2), methods.build("ifca", num_clusters=2)
    return Federation(clients, model, method, concepts=CONCEPTS)


@pytest.fixture(scope="module")
def run(federation):
    return federation.run(6)


def test_groups_follow_the_time_step_of_the_round():
    groups = TrueGroups({"a": (0, 1, None), "b": (2,)}, num_steps=3, planned_rounds=6)
    after = [dict(groups.after(number)) for number in (1, 2, 3, 4, 5, 6, 9)]
    first, second, third = {"a": 0, "b": 2}, {"a": 1, "b": 2}, {"a": None, "b": 2}
    assert after == [first, first, second, second, third, third, third]
    assert groups == first
    assert groups.text("a") == "0 1 -"
    assert groups.text("b") == "2 2 2"
    assert groups_after({"a": 0}, 6) == {"a": 0}


def test_groups_of_a_run_are_those_of_its_last_round(run):
    assert run.groups == {"a": 1, "b": 0, "c": 1, "d": 0}
    assert run.groups_after(3) == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_before_the_change_groups_are_those_of_step_0(federation):
    early = federation.run(3, planned_rounds=6)
    assert early.groups == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert federation.run(6, state=early).groups == {"a": 1, "b": 0, "c": 1, "d": 0}


def test_rounds_are_scored_by_the_groups_of_their_step(run):
    scored = run.rows()
    assert [row["time_step"] for row in scored] == [0, 0, 0, 1, 1, 1]
    for row, record in zip(scored, run.records, strict=True):
        groups = dict(run.groups_after(record.round))
        assert row["ari"] == rows.round_row(record, groups, 0.0)["ari"]
    assert run.metrics()["ari"] == scored[-1]["ari"] == 1.0
    assert run.metrics(dict(run.groups_after(1)))["ari"] < 0.1


def test_loggers_score_by_the_groups_of_the_step(federation, run):
    seen = []
    log = loggers.RoundLogger(lambda row, number: seen.append(row["ari"]), federation.groups)
    federation.run(6, on_round=log)
    assert seen == [row["ari"] for row in run.rows()]


def test_a_round_known_by_its_hypotheses_has_the_groups_of_its_step(run):
    for snapshot, row in zip(run.state.history, run.rows(), strict=True):
        assert rows.snapshot_row(snapshot, run.groups)["ari"] == row["ari"]


def test_graphs_have_the_groups_of_the_last_round_and_all_concepts(run, tmp_path):
    write_graphs(run, lambda kind: tmp_path / kind)
    for kind in ("clients", "clusters"):
        nodes = nx.read_graphml(tmp_path / kind).nodes
        assert {c: nodes[c]["group"] for c in CONCEPTS} == {"a": 1, "b": 0, "c": 1, "d": 0}
        assert nodes["a"]["concepts"] == "0 1"


def test_pairs_are_scored_by_the_groups_of_the_last_round(run):
    ax = run.plot_association_reliability()
    groups = [run.groups[client] for client in run.clients]
    assert groups == [1, 0, 1, 0]
    assert pairs.association_scores(run.co_association(), groups)["association_ece"] < 0.1
    assert ax.figure is not None


def test_arrays_have_the_groups_of_each_round(run):
    pytest.importorskip("xarray")
    group = run.to_xarray().coords["group"]
    assert group.dims == ("round", "client")
    assert group.values.tolist() == [[0, 0, 1, 1]] * 3 + [[1, 0, 1, 0]] * 3


def test_streams_of_experiments_bring_their_concepts():
    digits = datasets.load("optdigits")
    stream = partitions.stream(digits, clients=4, steps=3, order="multi-task")
    federation = Federation(stream, models.mlp((1, 8, 8), 4, 10), methods.build("fedavg"))
    for step in range(3):
        after = federation.groups.after(step + 1, planned_rounds=3)
        assert after == {client: seen[step] for client, seen in stream.concepts.items()}
    assert dict(federation.groups) == stream.groups


@pytest.mark.parametrize(
    ("concepts", "error", "words"),
    [
        ([0, 1], TypeError, r"concepts must be a mapping of clients, got \[0, 1\]"),
        ({"a": 1}, TypeError, r"concepts of client 'a' must be a sequence"),
        ({"a": (0, 1, 1)}, ValueError, r"concepts of client 'a' must be 1 to 2, .* got 3"),
        ({"a": ()}, ValueError, r"must be 1 to 2, the time steps of the data, got 0"),
        ({"a": (0, 0.5)}, TypeError, r"group must be a whole number or None, got 0.5"),
        ({"e": (0, 1)}, ValueError, r"got a group of 'e'"),
    ],
)
def test_odd_concepts_are_refused(clients, concepts, error, words):
    with pytest.raises(error, match=words):
        TrueGroups.of(clients, concepts)


def test_static_data_have_no_time_steps(clients):
    static = [ClientData(c.client, {"train": c.views["train"]}, c.group) for c in clients]
    run = Federation(static, models.mlp((2,), 4, 2), methods.build("fedavg")).run(2)
    assert not any("time_step" in row for row in run.rows())
    assert "concepts" not in run.association_graph().nodes["a"]
    assert re.fullmatch(r"TrueGroups\(.*, step 0 of 1\)", repr(run.groups))


def test_groups_are_counted_over_all_time_steps():
    groups = TrueGroups({"a": (0, 2), "b": (0,), "c": (None,)}, num_steps=2, planned_rounds=4)
    assert number_of_groups(groups) == 2
    assert number_of_groups({"a": 3, "b": None}) == 1


def test_groups_are_written_to_json_as_a_dictionary():
    groups = TrueGroups({"ann": (0, 1), "bob": (None,)}, num_steps=2, planned_rounds=2, round=2)
    assert json.dumps(dict(groups)) == '{"ann": 1, "bob": null}'
