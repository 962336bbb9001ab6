"""Means over rounds and seeds, worked by hand."""

import csv
import io
import json
from types import SimpleNamespace

import pytest

from bcfl.analysis.rows import COUNTS
from bcfl.rounds.round import LAST_ROUNDS
from experiments.reports import compare
from experiments.reports.columns import Length
from experiments.runs import summary
from experiments.runs.files import Pair
from experiments.runs.index import Contents

F1 = [(0.5, 0.7), (0.8, 0.3), (0.7, 0.4), (0.8, 0.2)]
ACCURACY = {0: [0.1, 0.2, 0.6, 0.9], 1: [0.5, 0.5, 0.5, 0.8]}


def row(number, accuracy, ari=0.5):
    scores = dict.fromkeys(summary.SCALARS, 1) | dict.fromkeys(COUNTS, number)
    seconds = dict.fromkeys(("train", "score", "server", "evaluate"), 0.25) | {"total": 2.0}
    return {"round": number, **scores, "accuracy": accuracy, "ari": ari, "seconds": seconds}


def rounds(seed, **options):
    return [row(n, a, **options) for n, a in enumerate(ACCURACY[seed], start=1)]


def test_scores_are_means_of_the_last_three_rounds_and_costs_sums_of_all():
    seed = summary.of_seed(rounds(0))
    assert seed["accuracy"] == pytest.approx((0.2 + 0.6 + 0.9) / 3)
    assert seed["seconds"] == 4.0, "phases, not the whole round"
    assert (seed["trainings_requested"], seed["trainings_run"]) == (10, 10)
    assert summary.of_seed(rounds(0)[:1])["accuracy"] == 0.1
    assert set(seed) == {
        *("accuracy", "macro_f1", "weighted_f1", "ari", "ami", "nll", "ece"),
        *("mean_ari", "mean_ami", "mean_homogeneity", "mean_completeness"),
        *("mean_macro_f1", "mean_hold_out_f1", "learning_gap"),
        *("seconds", "trainings_requested", "trainings_run"),
        *("communication", "storage", "computation"),
        *("traffic_first", "traffic_mean", "traffic_peak"),
    }


def stream(*steps):
    return [{**row, "time_step": step} for row, step in zip(rounds(0), steps, strict=True)]


@pytest.mark.parametrize(
    ("steps", "averaged", "ends"),
    [
        ((0, 1, 2, 3), [0.9], [0.1, 0.2, 0.6, 0.9]),
        ((0, 0, 1, 1), [0.6, 0.9], [0.2, 0.9]),
        ((0, 1, 1, 1), [0.2, 0.6, 0.9], [0.1, 0.9]),
    ],
)
def test_scores_of_streams_are_of_the_last_time_step_alone(steps, averaged, ends):
    found = summary.of_seed(stream(*steps))
    assert found["accuracy"] == pytest.approx(sum(averaged) / len(averaged))
    assert found["step_accuracy"] == pytest.approx(sum(ends) / len(ends))
    assert found["mean_ari"] == 0.5
    unknown = [{**stream(*steps)[0], "accuracy": None}, *stream(*steps)[1:]]
    assert (summary.of_seed(unknown)["step_accuracy"] is None) == (steps[0] != steps[1])


def test_the_accuracy_of_one_time_step_is_that_of_its_last_round():
    assert summary.step_accuracy(rounds(0)) == 0.9


def test_costs_are_means_of_all_rounds_and_storage_the_largest():
    done = [row(n, 0.5) | {"models_sent": n, "models_run": 2 * n} for n in (1, 2, 6)]
    nobody = row(4, 0.5) | {"models_sent": None, "models_run": None}
    found = summary.of_seed([*done, nobody])
    assert (found["communication"], found["storage"], found["computation"]) == (3, 6, 6)
    assert summary.of_seed([nobody])["storage"] is None


def test_traffic_is_of_the_first_the_mean_and_the_largest_round():
    sizes = ((3, 1), (6, 3), (1, 1))
    done = [
        row(n, 0.5) | {"bytes_down": down * 10**6, "bytes_up": up * 10**6}
        for n, (down, up) in enumerate(sizes, start=1)
    ]
    found = summary.of_seed(done)
    assert [found[f"traffic_{name}"] for name in ("first", "mean", "peak")] == [4, 5, 9]


def test_agreement_is_averaged_over_all_rounds_too():
    # Found in the second of four rounds: three rounds of four count.
    done = [row(n, 0.5, ari=float(n > 1)) for n in range(1, 5)]
    assert summary.of_seed(done)["mean_ari"] == 0.75
    assert summary.of_seed([row(1, 0.5, ari=None), *done])["mean_ari"] is None
    older = [{name: v for name, v in one.items() if name != "homogeneity"} for one in done]
    assert summary.of_seed(older)["mean_homogeneity"] is None


def test_the_learning_gap_lies_between_means_over_all_rounds():
    done = [row(n, 0.5) | {"macro_f1": f1, "hold_out_f1": g} for n, (f1, g) in enumerate(F1, 1)]
    found = summary.of_seed(done)
    assert found["mean_macro_f1"] == pytest.approx(0.7)
    assert found["mean_hold_out_f1"] == pytest.approx(0.4)
    assert found["learning_gap"] == pytest.approx(0.3)
    unknown = [one | {"hold_out_f1": None} for one in done]
    assert summary.of_seed(unknown)["learning_gap"] is None


def test_a_score_that_is_not_known_stays_unknown():
    assert summary.of_seed(rounds(0, ari=None))["ari"] is None
    assert summary.over_seeds([None, None]) == {"mean": None, "std": None, "values": [None, None]}
    assert summary.over_seeds([None, 3.0]) == {"mean": 3.0, "std": 0.0, "values": [None, 3.0]}


def test_mean_and_sample_standard_deviation_over_seeds():
    found = summary.over_seeds([1.0, 2.0, 6.0])
    assert found["mean"] == 3.0
    assert found["std"] == pytest.approx(7**0.5)
    assert summary.over_seeds([4.0]) == {"mean": 4.0, "std": 0.0, "values": [4.0]}


def test_the_summary_has_the_documented_form():
    pairs = {Pair("ifca", 1): rounds(1), Pair("ifca", 0): rounds(0)}
    found = summary.summarise("demo", pairs)
    assert found["scenario"] == "demo"
    accuracy = found["methods"]["ifca"]["accuracy"]
    assert accuracy["values"] == pytest.approx([17 / 30, 0.6])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_table_of_rounds_has_a_line_for_each():
    pairs = {Pair("ifca", 0): rounds(0, ari=None), Pair("wecfl", 1): rounds(1)}
    read = list(csv.DictReader(io.StringIO(summary.as_csv(pairs))))
    assert [(r["method"], r["seed"], r["round"]) for r in read] == [
        *(("ifca", "0", str(n)) for n in range(1, 5)),
        *(("wecfl", "1", str(n)) for n in range(1, 5)),
    ]
    assert [float(r["accuracy"]) for r in read] == ACCURACY[0] + ACCURACY[1]
    assert (read[0]["ari"], read[4]["ari"]) == ("", "0.5")
    assert read[0]["seconds_total"] == "2.0"


def test_the_table_of_rounds_of_a_stream_has_their_time_steps():
    done = [{**row, "time_step": number // 2} for number, row in enumerate(rounds(0))]
    read = list(csv.DictReader(io.StringIO(summary.as_csv({Pair("ifca", 0): done}))))
    assert [row["time_step"] for row in read] == ["0", "0", "1", "1"]
    assert "time_step" not in summary.as_csv({Pair("ifca", 0): rounds(0)})


def results(seeds=1):
    def metrics(accuracy, ari, nll):
        cells = dict.fromkeys(("accuracy", "macro_f1"), accuracy)
        cells |= {"ari": ari, "nll": nll, "ece": 0.1, "seconds": 3.0}
        cells |= {"trainings_requested": 1000, "trainings_run": 250}
        return {name: summary.over_seeds([value] * seeds) for name, value in cells.items()}

    return {"fedavg": metrics(0.9181, None, 0.3), "bcfl-mh-6": metrics(0.962, 1.0, 0.21)}


def test_what_is_better_by_paired_tests_is_marked():
    header, fedavg, best, _, *note = compare.aligned(results(6))
    assert header.split() == [
        *("method", "accuracy", "macro-F1", "ARI", "NLL", "ECE", "seconds"),
        *("trainings", "requested", "/", "run"),  # costs beside FedAvg's are not known
    ]
    assert fedavg.split() == [
        *("fedavg", "91.8", "±0.0", "91.8", "±0.0", "–", "0.300", "±0.000", "0.100", "±0.000"),
        *("3.0", "±0.0"),
        *("1000", "/", "250"),
    ]
    assert best.split() == [
        *("bcfl-mh-6", "96.2", "±0.0", "▲", "96.2", "±0.0", "▲", "1.00", "±0.00"),
        *("0.210", "±0.000", "▲", "0.100", "±0.000", "3.0", "±0.0"),
        *("1000", "/", "250"),
    ]
    assert len(fedavg) == len(best)
    assert " ".join(note).startswith("▲ better than every other method")
    assert "▲" not in "".join(compare.aligned(results(6), paired=False))


def test_marks_are_explained_where_there_are_some():
    one = results(6)
    same = {"fedavg": one["fedavg"], "ifca": one["fedavg"]}
    text = "\n".join(compare.aligned(same))
    assert "▲" not in text
    assert "in no column is one better than every other" in text
    assert "ARI" not in text, "groups are not known"


def test_too_few_seeds_mark_no_best_and_say_how_many_it_takes():
    _, *rows, averaged, note = compare.aligned(results(5))[:5]
    assert averaged.startswith("Scores are means over the last three rounds")
    assert "▲" not in "".join(rows)
    assert note.startswith("No best method is marked: to show that one of 2 is better than every")
    *_, note, _, spread, _ = compare.latex(results(5))
    assert "at least 6 seeds" in note
    assert spread == "% ± is the sample standard deviation over seeds."
    assert "±" not in "".join(compare.aligned(results(1)))


def test_one_row_has_no_best_and_several_seeds_have_a_spread():
    one = {"ifca": {**results()["fedavg"], "accuracy": summary.over_seeds([0.5, 0.6])}}
    _, line, _ = compare.aligned(one)
    assert "▲" not in line
    assert "55.0 ±7.1" in line


def test_latex_compiles_in_principle():
    text = "\n".join(line for line in compare.latex(results(6)) if line[0] != "%")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    assert r"bcfl-mh-6 & \textbf{96.2 $\pm$ 0.0} & \textbf{96.2 $\pm$ 0.0} & 1.00 $\pm$" in text
    assert r"fedavg & 91.8 $\pm$ 0.0 & 91.8 $\pm$ 0.0 & -- & 0.300 $\pm$ 0.000" in text
    assert all(line.endswith(r"\\") for line in text.splitlines() if "&" in line)
    columns = text.splitlines()[0].split("{")[-1].rstrip("}")
    assert {line.count("&") + 1 for line in text.splitlines() if "&" in line} == {len(columns)}


def test_finetuned_models_are_tested_in_the_rounds_that_are_averaged():
    assert summary.LAST_ROUNDS == LAST_ROUNDS


@pytest.mark.parametrize(
    ("rounds", "told"),
    [
        ({"A": Length(1, 1)}, "Scores are those of the only round; costs"),
        ({"A": Length(2, 2)}, "Scores are means over both rounds; costs"),
        ({"A": Length(30)}, "Scores are means over the last three rounds; costs"),
        (
            {"A": Length(1, 1), "B": Length(2, 2)},
            "Scores are means over both rounds, or all there are; costs",
        ),
        (
            {"A": Length(2, 2), "B": Length(9)},
            "Scores are means over the last three rounds, or all there are; costs",
        ),
        (
            {"A": Length(4, 1, stream=True)},
            "Scores are those of the only round of the last time step; costs",
        ),
        (
            {"A": Length(12, 3, stream=True)},
            "Scores are means over the last three rounds of the last time step; costs",
        ),
        (
            {"A": Length(4, 1, stream=True), "B": Length(4)},
            "Scores are means over the last three rounds, of streams those of the last time step, "
            "or all there are; costs",
        ),
    ],
)
def test_what_scores_are_means_of_is_true_of_short_runs_and_of_streams(rounds, told):
    lines = compare.aligned(results(), rounds=rounds)
    assert told in " ".join(lines[3:])
    differ = len({length.rounds for length in rounds.values()}) > 1
    assert any("differ in their number of rounds (A " in line for line in lines) == differ


def test_the_length_of_a_run_is_that_of_its_longest_seed():
    assert Length.of([]) == Length(0)
    assert Length.of([rounds(0)[:1], rounds(1)]) == Length(4)
    assert Length.of([rounds(0)[:2]]) == Length(2, 2)
    assert Length.of([stream(0, 0, 1, 1)]) == Length(4, 2, stream=True)


def test_tables_of_streams_have_the_accuracy_of_all_time_steps():
    found = {"fedavg": results()["fedavg"] | {"step_accuracy": summary.over_seeds([0.625])}}
    header, line, *_ = compare.aligned(found)
    assert header.split()[1:4] == ["accuracy", "step", "accuracy"]
    assert line.split()[1:3] == ["91.8", "62.5"]
    assert "step" not in compare.aligned({**found, "static": results()["fedavg"]})[0]


def test_columns_that_do_not_fit_a_line_go_on_below():
    whole, wrapped = compare.aligned(results(6)), compare.aligned(results(6), width=60)
    table = wrapped[: next(i for i, line in enumerate(wrapped) if line.startswith("Scores"))]
    assert all(len(line) <= 60 for line in table)
    assert [line.split()[0] for line in table if line][:4] == [
        *("method", "fedavg", "bcfl-mh-6", "method")
    ]
    for name in ("method", "fedavg", "bcfl-mh-6"):
        parts = [line.split()[1:] for line in table if line.startswith(name)]
        (line,) = (line for line in whole if line.startswith(name))
        assert [word for part in parts for word in part] == line.split()[1:]


def test_a_summary_that_averages_several_time_steps_is_made_anew(monkeypatch, tmp_path):
    index = SimpleNamespace(has_scenario=True, methods=["fedavg"], name="drift")
    monkeypatch.setattr(summary, "read_index", lambda folder: index)
    contents = Contents(rounds={Pair("fedavg", 0): stream(0, 0, 1, 1)}, damaged={}, missing={})

    def accuracy(**metrics):
        values = {name: summary.over_seeds([value]) for name, value in metrics.items()}
        written = {"scenario": "drift", "methods": {"fedavg": values}}
        (tmp_path / "summary.json").write_text(json.dumps(written), encoding="utf-8")
        return summary.summary_of(tmp_path, contents)["methods"]["fedavg"]["accuracy"]["mean"]

    assert accuracy(accuracy=0.1) == pytest.approx((0.6 + 0.9) / 2)
    assert accuracy(accuracy=0.1, step_accuracy=0.2) == 0.1
