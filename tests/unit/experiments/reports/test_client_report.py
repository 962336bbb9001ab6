"""Client reports against checkpoints, data and graphs read in other ways."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import entropy

from bcfl.analysis import rows
from bcfl.rounds import checkpoint
from experiments.reports import client_report
from experiments.reports.client_report import read_history
from experiments.reports.uncertainty_results import Query, evaluate_run
from experiments.runs.files import Pair, RunFiles
from experiments.runs.restore import restore
from experiments.runs.selection import choose, find_client
from experiments.scores.gains import FINE_TUNED, SERVED

METHODS = ("fedavg", "bcfl-mh-3", "bcfl-mht-4", "ifca-cam")
TABLE = {
    "name": "tiny",
    "methods": list(METHODS),
    "seeds": [1],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "rotated", "groups": 2, "clients": 8, "samples_per_client": 40},
    "model": {"name": "mlp", "hidden": [8]},
    "training": {"local_steps": 8},
    "federation": {"rounds": 4, "num_clusters": 2, "client_fraction": 0.5},
}


@pytest.fixture(scope="module")
def folder(run_of):
    return run_of(TABLE)


@pytest.fixture(scope="module")
def history(folder):
    return read_history(folder, Pair("bcfl-mh-3", 1))


@pytest.fixture(scope="module")
def reports(history):
    return history.client_reports()


def test_the_last_round_has_what_is_believed_now_also_after_an_early_stop(
    folder, history, monkeypatch
):
    restored = restore(folder, history.pair)
    *earlier, last = restored.state.history
    assert any(belief is not None for belief in last.beliefs)
    stopped = replace(restored.state, history=(*earlier, replace(last, beliefs=())))
    again = replace(restored, state=stopped)
    monkeypatch.setattr(client_report, "restore", lambda *_: again)
    found = read_history(folder, history.pair)
    assert np.array_equal(found.filtered[-1], history.filtered[-1])


def outputs(model, posterior, inputs):
    """A two-layer network in plain numpy from its flat parameters."""
    flat = posterior.mean(model).double().numpy()
    hidden, classes = 8, 10
    first, flat = flat[: 64 * hidden].reshape(hidden, 64), flat[64 * hidden :]
    offset, flat = flat[:hidden], flat[hidden:]
    second, last = flat[: hidden * classes].reshape(classes, hidden), flat[hidden * classes :]
    flattened = inputs.double().numpy().reshape(len(inputs), -1)
    logits = np.maximum(flattened @ first.T + offset, 0) @ second.T + last
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def mixture(state, model, client, inputs):
    """The mean over hypotheses and, for a client never seen, over clusters."""
    total = 0.0
    for hypothesis in state.hypotheses:
        label = hypothesis.association.label(client)
        serving = range(len(hypothesis.clusters)) if label < 0 else [label]
        for cluster in serving:
            weight = np.exp(hypothesis.log_weight) / len(serving)
            total = total + weight * outputs(model, hypothesis.clusters[cluster], inputs)
    return total


def test_scores_are_those_of_the_models_on_the_clients_test_samples(folder, history, reports):
    states = {
        m: checkpoint.load(checkpoint.newest(RunFiles(folder).of(Pair(m, 1)).checkpoints))
        for m in METHODS
    }
    model, state = history.run.model, states["bcfl-mh-3"]
    for report, data in zip(reports, history.clients, strict=True):
        view = data.views["test"]
        targets, rows = view.targets.numpy(), np.arange(len(view.targets))
        expected = {"what serves it": mixture(state, model, report.client, view.inputs)}
        for index, posterior in enumerate(state.hypotheses.best.clusters):
            expected[f"cluster {index}"] = outputs(model, posterior, view.inputs)
        expected["fedavg"] = mixture(states["fedavg"], model, report.client, view.inputs)
        assert [score.model for score in report.scores] == list(expected)
        for score in report.scores:
            p = expected[score.model]
            assert score.accuracy == pytest.approx((p.argmax(axis=1) == targets).mean())
            assert score.nll == pytest.approx(-np.log(p[rows, targets]).mean(), rel=1e-4)
        believed = sum(
            np.exp(hypothesis.log_weight) * share * outputs(model, posterior, view.inputs)
            for hypothesis in state.hypotheses
            for share, posterior in zip(
                hypothesis.membership[hypothesis.association.position[report.client]],
                hypothesis.clusters,
                strict=True,
            )
        )
        expected_entropy = entropy(believed, axis=1).mean()
        assert report.prediction_entropy == pytest.approx(expected_entropy, rel=1e-4)
        assert -1e-9 <= report.association_uncertainty <= report.prediction_entropy


def test_reports_describe_the_data_of_their_client(history, reports):
    for report, data in zip(reports, history.clients, strict=True):
        assert report.num_samples == {"train": 30, "test": 10}
        assert report.group == data.group
        labels = torch.cat([data.views["train"].targets, data.views["test"].targets]).tolist()
        assert report.classes.tolist() == [labels.count(c) for c in range(max(labels) + 1)]


def test_peers_agree_with_the_association_graph(folder, history, reports):
    graph = nx.read_graphml(RunFiles(folder).of(history.pair).graph("clients"))
    for report in reports:
        assert {c.client for c in report.peers} == set(history.names) - {report.client}
        latest = {c.client: c.latest for c in report.peers}
        for other, chance in latest.items():
            edge = graph.get_edge_data(report.client, other, {"probability": 0.0})
            assert chance == pytest.approx(edge["probability"], abs=1e-3)
        accumulated = history.run.accumulated_association_graph()
        for peer in report.peers:
            edge = accumulated.get_edge_data(report.client, peer.client, {"probability": 0.0})
            assert peer.mean == pytest.approx(edge["probability"], abs=1e-9)
        now = [c.latest for c in report.peers]
        assert now == sorted(now, reverse=True)


def test_latest_co_association_is_summed_over_hypotheses(history, reports):
    for report, other in itertools.permutations(reports, 2):
        shared = 0.0
        for hypothesis in history.run.state.hypotheses:
            rows = [hypothesis.association.position[s.client] for s in (report, other)]
            one, two = hypothesis.membership[rows]
            shared += np.exp(hypothesis.log_weight) * float(one @ two)
        found = next(c.latest for c in report.peers if c.client == other.client)
        assert found == pytest.approx(shared, abs=1e-9)


def test_rounds_are_distributions_or_unseen_and_the_last_is_the_latest(history, reports):
    seen = [set() for _ in range(4)]
    for number, snapshot in enumerate(history.run.state.history):
        leading = snapshot.associations[0]
        seen[number] = {c for c, k in zip(leading.clients, leading.labels, strict=True) if k >= 0}
    assert len(seen[0]) == 4
    for report in reports:
        assert report.filtered.shape == report.smoothed.shape == (4, 2)
        for number, row in enumerate(report.filtered):
            assert row.sum() == pytest.approx(float(report.client in seen[number]))
        assert np.allclose(report.filtered[-1], report.probabilities)
        assert np.allclose(report.smoothed[-1], report.probabilities)
        assert (
            (report.labels[0] == -1) == (report.believed[0] == -1) == (report.client not in seen[0])
        )
        assert report.entropy == pytest.approx(entropy(report.probabilities))


@pytest.mark.parametrize(
    ("name", "client"), [("client-07", "client-07"), ("7", "client-07"), ("007", "client-07")]
)
def test_a_client_is_found_by_name_or_number(name, client):
    assert find_client(name, [f"client-{n:02d}" for n in range(12)]) == client


def test_a_number_is_a_position_where_names_have_none():
    assert find_client("1", ["art", "photo", "sketch"]) == "photo"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clinet-07", "Did you mean 'client-07'"),
        ("12", "12 clients, client-00 to client-11"),
        ("-1", "unknown client"),
    ],
)
def test_an_unknown_client_is_answered_with_the_known_ones(name, message):
    with pytest.raises(ValueError, match=message):
        find_client(name, [f"client-{n:02d}" for n in range(12)])


def test_a_number_that_two_clients_have_is_refused():
    with pytest.raises(ValueError, match="unknown client '1'"):
        find_client("1", ["east-1", "west-1"])


def test_the_best_method_is_chosen_unless_one_is_named(folder):
    best, note = choose(folder, None, None)
    assert best.method in METHODS[1:]
    assert "ARI" in note
    assert "fedavg" in note
    assert choose(folder, "fedavg", 1) == (Pair("fedavg", 1), "")


@pytest.mark.parametrize(
    ("method", "seed", "message"),
    [("bcfl-mh3", None, "Did you mean 'bcfl-mh-3'"), (None, 7, "no seed 7; it has 1")],
)
def test_methods_and_seeds_that_were_not_run_are_refused(folder, method, seed, message):
    with pytest.raises(ValueError, match=message):
        choose(folder, method, seed)


def test_fedavg_has_no_baseline(folder):
    history = read_history(folder, Pair("fedavg", 1))
    (report,) = history.client_reports(["client-03"])
    assert [score.model for score in report.scores] == ["what serves it", "cluster 0"]
    assert report.client == "client-03"


def test_networks_that_a_method_makes_its_own_of_are_scored_beside_a_plain_fedavg(folder):
    history = read_history(folder, Pair("ifca-cam", 1))
    (report,) = history.client_reports(["client-03"])
    tested = restore(folder, Pair("ifca-cam", 1)).run
    inputs = history.clients[3].views["test"].inputs
    prediction = tested.predict("client-03", inputs, "plug-in", by="association")
    targets = history.clients[3].views["test"].targets.numpy()
    assert [score.model for score in report.scores] == [
        *("what serves it", "cluster 0", "cluster 1", "fedavg")
    ]
    right = prediction.mean.argmax(axis=1) == targets
    assert report.scores[0].accuracy == pytest.approx(right.mean())
    assert report.scores[0].num_samples == len(targets)


def test_the_first_score_is_of_the_fine_tuned_model_where_clients_fine_tune(run_of):
    table = {**TABLE, "methods": ["wecfl", "wecfl-finetune"]}
    table["federation"] = {**TABLE["federation"], "client_fraction": 1.0}
    folder = run_of(table)
    for method in ("wecfl", "wecfl-finetune"):
        pair = Pair(method, 1)
        reports = read_history(folder, pair).client_reports()
        logged = rows.read(RunFiles(folder).of(pair).metrics)[-1]
        first = [report.scores[0] for report in reports]
        sizes = np.array([score.num_samples for score in first])
        nll = np.average([score.nll for score in first], weights=sizes)
        assert nll == pytest.approx(logged["nll"], rel=1e-6)
        expected = [SERVED] if method == "wecfl" else [FINE_TUNED, SERVED]
        assert [s.model for s in reports[0].scores[: len(expected)]] == expected
        (finetunes,) = {r.finetunes for r in evaluate_run(folder, Query(methods=(method,)))}
        assert finetunes == (method == "wecfl-finetune")
