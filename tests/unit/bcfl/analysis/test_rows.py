"""Lines of metrics.jsonl: contents, no NaN, half-written ends."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import ClientData, Federation, methods
from bcfl.analysis import metrics, rows
from experiments import datasets, models, partitions


@pytest.fixture(scope="module")
def two_rounds():
    data = datasets.load("optdigits")
    part = partitions.rotated(data, groups=2, clients=6, samples_per_client=40, seed=3)
    model = models.build_for(data, "linear", {})
    seen = []
    method = methods.build("bcfl-mh-3", num_clusters=2)
    Federation(part, model, method, seed=3, device="cpu").run(
        2, on_round=lambda state, record: seen.append((state, record))
    )
    return part, seen


def test_a_row_says_what_happened(two_rounds):
    part, seen = two_rounds
    state, record = seen[-1]
    row = rows.round_row(record, part.groups, 1.5)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert row["round"] == 2
    leading = state.hypotheses.best.association
    correct = sum(int(np.trace(s.confusion)) for s in record.evaluations.values())
    samples = sum(s.num_samples for s in record.evaluations.values())
    assert row["accuracy"] == pytest.approx(correct / samples, abs=0)
    assert row["cluster_sizes"] == [int((leading.labels == k).sum()) for k in range(2)]
    assert row["clusters_used"] == len(set(leading.labels.tolist()))
    assert sum(row["hypothesis_weights"]) == pytest.approx(1, abs=1e-12)
    assert row["effective_hypotheses"] == pytest.approx(
        1 / sum(w * w for w in row["hypothesis_weights"]), rel=1e-12
    )
    assert len(row["parents"]) == len(row["hypothesis_weights"])
    assert row["participants"] == 6
    assert row["trainings_requested"] >= row["trainings_run"] > 0
    assert row["scores_requested"] >= row["scores_run"] > 0
    assert row["failures"] == []
    assert set(row["seconds"]) == {"train", "score", "server", "evaluate", "total"}
    assert row["seconds"]["total"] == 1.5


def test_without_true_groups_agreement_is_null(two_rounds):
    _, seen = two_rounds
    row = rows.round_row(seen[-1][1], None, 0.0)
    assert (row["ari"], row["ami"]) == (None, None)


def test_agreement_is_that_of_scikit_learn(two_rounds):
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

    part, seen = two_rounds
    state, record = seen[-1]
    row = rows.round_row(record, part.groups, 0.0)
    truth = [data.group for data in part.clients]
    labels = state.hypotheses.best.association.labels
    assert row["ari"] == adjusted_rand_score(truth, labels)
    assert row["ami"] == adjusted_mutual_info_score(truth, labels)


def test_what_is_not_known_is_null(two_rounds):
    _, seen = two_rounds
    _, record = seen[-1]
    snapshot = replace(record.snapshot, log_captured_mass=math.nan)
    untested = replace(record, evaluations={}, snapshot=snapshot)
    row = rows.round_row(untested, None, 0.0)
    assert [row[name] for name in ("accuracy", "macro_f1", "nll", "ece", "brier")] == [None] * 5
    assert row["log_captured_mass"] is None


def lines(path, *rounds):
    for number in rounds:
        rows.append(path, {"round": number, "accuracy": 0.1 + 0.2 * number})


def test_rows_read_back_to_the_last_bit(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert rows.read(path) == []
    lines(path, 1, 2, 3)
    assert [row["accuracy"] for row in rows.read(path)] == [0.1 + 0.2 * n for n in (1, 2, 3)]
    with pytest.raises(ValueError, match="Out of range float"):
        rows.append(path, {"round": 4, "accuracy": math.nan})


def test_a_half_written_last_line_is_left_out_and_cut_away(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines(path, 1, 2, 3)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"round": 4, "accur')
    assert [row["round"] for row in rows.read(path)] == [1, 2, 3]
    rows.keep_rounds(path, 3)
    assert path.read_bytes() == whole
    assert [row["round"] for row in rows.keep_rounds(path, 1)] == [1]
    lines(path, 2)
    assert [row["round"] for row in rows.read(path)] == [1, 2]
    assert rows.keep_rounds(path, 0) == []
    assert path.read_bytes() == b""


def test_a_file_that_was_changed_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines(path, 1, 3)
    with pytest.raises(rows.MetricsError, match=r"line 2 of .*metrics\.jsonl isn't round 2"):
        rows.read(path)
    path.write_bytes(b"\x00\x00\n")
    with pytest.raises(rows.MetricsError, match="line 1"):
        rows.read(path)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("accuracy", "high", "int or float or null"),
        ("cluster_sizes", 3, "list"),
        ("seconds", None, "dict"),
        ("belief", [], "dict or null"),
    ],
)
def test_a_column_of_another_type_is_named(tmp_path, name, value, allowed):
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"round": 1, name: value}) + "\n")
    message = rf"{name} in line 1 of .*metrics\.jsonl must be {allowed}, got {value!r}; the file"
    with pytest.raises(rows.MetricsError, match=message.replace("[]", r"\[\]")):
        rows.read(path)


def test_rows_that_lack_columns_are_a_data_frame():
    frame = rows.to_dataframe([{"round": 1, "accuracy": 0.5}, {"round": 2, "failures": ["a"]}])
    assert frame["accuracy"].isna().tolist() == [False, True]
    assert frame["failures"].isna().tolist() == [True, False]


def test_fewer_rounds_than_the_checkpoint_says(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines(path, 1)
    with pytest.raises(
        rows.MetricsError, match="holds 1 rounds, its checkpoint comes after round 2"
    ):
        rows.keep_rounds(path, 2)


def random_targets(kind):
    random = np.random.default_rng(0)
    shape = {"categorical": 20, "gaussian": (20, 2), "bernoulli": (20, 2)}[kind]
    drawn = random.integers(0, 2, shape)
    return random.normal(size=(20, 2)), drawn - 0.5 if kind == "gaussian" else drawn


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "bernoulli"])
def test_scores_without_records_are_those_of_the_rows(kind, tmp_path):
    samples = random_targets(kind)
    clients = [ClientData.from_arrays(f"c{i}", samples, test=samples) for i in range(3)]
    run = Federation(clients, lambda: torch.nn.Linear(2, 2), methods.fedavg()).run(2)
    assert run.model.likelihood == kind
    rows.write(tmp_path / "metrics.jsonl", run.rows())
    logged = tuple(rows.read(tmp_path / "metrics.jsonl"))
    scores = run.metrics()
    assert all(math.isfinite(scores[name]) for name in metrics.SCORES[kind])
    for name, value in replace(run, records=(), logged=logged).metrics().items():
        assert value == scores[name] or math.isnan(scores[name])


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "bernoulli"])
@pytest.mark.parametrize("tested", [True, False])
def test_scores_are_those_of_the_likelihood_with_and_without_tests(kind, tested, tmp_path):
    samples = random_targets(kind)
    clients = [
        ClientData.from_arrays(f"c{i}", samples, test=samples if tested else None) for i in range(3)
    ]
    run = Federation(clients, lambda: torch.nn.Linear(2, 2), methods.fedavg()).run(2)
    scores, own = run.metrics(), metrics.SCORES[kind]
    assert tuple(scores) == (*own, *metrics.AGREEMENT)
    assert all(math.isfinite(scores[name]) == tested for name in own)
    of_classes = ("weighted_f1", "hold_out_f1") if kind == "categorical" else ()
    some = {name for names in metrics.SCORES.values() for name in names}
    some |= {"weighted_f1", "hold_out_f1"}
    frame = run.to_dataframe()
    assert [name for name in frame if name in some] == [*own, *of_classes]
    assert frame[list(own)].isna().to_numpy().all() == (not tested)
    first = "accuracy" if kind != "gaussian" else "rmse"
    assert (f"<th>{first}</th>" in run._repr_html_()) == tested
    rows.write(tmp_path / "metrics.jsonl", run.rows())
    logged = replace(run, records=(), logged=tuple(rows.read(tmp_path / "metrics.jsonl")))
    assert logged.metrics() == pytest.approx(scores, nan_ok=True)


def test_columns_of_their_own_may_have_any_type(tmp_path):
    path = tmp_path / "metrics.jsonl"
    row = {"round": 1, "connected": ["a", "b"], "traffic": {"a": 3}, "note": "here"}
    path.write_text(json.dumps(row) + "\n")
    assert rows.read(path) == [row]
