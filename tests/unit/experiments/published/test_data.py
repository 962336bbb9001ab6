"""Results are those of the data that are here; tables say what data theirs were made from."""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import Dataset
from experiments.published import carry_out as work
from experiments.published import reading
from experiments.published.carry_out import Machine, Reporter, carry_out
from experiments.published.comparison import compare
from experiments.published.data import described, fingerprint
from experiments.published.formats import remarks
from experiments.published.results import Results
from experiments.published.units import units_of
from experiments.runs.runner import RunCallbacks

load = datasets.load


def some(seed=0, samples=40, **changes):
    rng = np.random.default_rng(seed)
    inputs = rng.random((samples, 1, 8, 8)).astype(np.float32)
    targets = np.arange(samples) % 10
    return replace(Dataset(name="d", inputs=inputs, targets=targets, num_classes=10), **changes)


def test_a_fingerprint_tells_data_apart_but_not_by_last_digits():
    own = fingerprint(some())
    others = [
        some(seed=1),
        some(samples=41),
        some(targets=some().targets[::-1].copy()),
        some(inputs=some().inputs.reshape(40, 64)),
        some(num_native_test=5),
        some(writers=np.arange(40)),
        some(domains=np.arange(40) % 2, domain_names=("a", "b")),
    ]
    prints = [own, *map(fingerprint, others)]
    assert len(set(prints)) == len(prints)
    assert fingerprint(some(inputs=some().inputs * np.float32(1 + 1e-7))) == own


@pytest.fixture
def on(monkeypatch):
    """Runs the units of the miniature on some data, and tells which of them had others before."""

    def run(results, dataset, columns=("label",)):
        monkeypatch.setattr(datasets, "load", lambda *_, **how: dataset)
        ran, others = [], []
        reporter = Reporter(
            callbacks=lambda scenario: nullcontext(RunCallbacks()),
            on_unit=lambda unit, number: ran.append(unit.row.name),
            on_other_data=lambda unit, data: others.append(data["samples"]),
        )
        units = units_of(reading.load("tiny/1"), "small", [0], columns)
        carry_out(units, results, Machine(), reporter)
        return ran, others

    return run


def of_digits(samples=600, shift=0.0):
    digits = load("optdigits")
    inputs = digits.inputs[:samples] + np.float32(shift)
    return replace(digits, inputs=inputs, targets=digits.targets[:samples])


def test_units_made_from_other_data_are_run_again(miniature, on):
    fewer, other, digits = of_digits(), of_digits(shift=0.5), of_digits(700)
    both = ["FedAvg", "IFCA & more"]
    assert on(Results(miniature), fewer) == (both, [])
    assert on(Results(miniature), fewer) == ([], [])
    assert on(Results(miniature), other) == (both, [600, 600])
    assert on(Results(miniature), digits) == (both, [600, 600])
    content = json.loads((miniature / "tiny/1/small/label--FedAvg--seed-0.json").read_text())
    assert content["data"] == described(digits)


def test_results_of_old_are_compared_by_their_number_of_samples(miniature, on):
    digits = of_digits()
    on(Results(miniature), digits)
    path = miniature / "tiny/1/small/label--FedAvg--seed-0.json"
    content = json.loads(path.read_text())
    del content["data"]["fingerprint"]
    path.write_text(json.dumps(content))
    assert on(Results(miniature), of_digits(shift=0.5)) == (["IFCA & more"], [600])
    content["data"]["samples"] = 8000
    path.write_text(json.dumps(content))
    units = units_of(reading.load("tiny/1"), "small", [0], ["label"])
    assert all(map(Results(miniature).is_done, units))  # nothing is loaded to show them
    assert on(Results(miniature), of_digits(shift=0.5)) == (["FedAvg"], [8000])


def test_data_that_cannot_be_loaded_leave_results_as_they_are(miniature, on, monkeypatch):
    on(Results(miniature), of_digits())
    monkeypatch.setattr(datasets, "load", lambda *_, **how: 1 / 0)
    reporter = Reporter(callbacks=lambda scenario: nullcontext(RunCallbacks()))
    units = units_of(reading.load("tiny/1"), "small", [0], ["label"])
    carry_out(units, Results(miniature), Machine(), reporter)
    assert all(map(Results(miniature).is_done, units))


def test_a_unit_that_began_with_other_data_begins_anew(miniature):
    (unit, *_) = units_of(reading.load("tiny/1"), "small", [0], ["label"])
    files = Results(miniature).work(unit)
    first, other = described(of_digits()), described(of_digits(700))
    work._keep_if_same(files, "config", first)
    checkpoint = files.folder / "checkpoint"
    checkpoint.touch()
    work._keep_if_same(files, "config", first)
    assert checkpoint.exists()
    work._keep_if_same(files, "config", other)
    assert not checkpoint.exists()


def test_remarks_name_the_data_and_columns_of_other_data(miniature):
    table, results = reading.load("tiny/1"), Results(miniature)

    def notes(samples, fingerprint):
        for unit in units_of(table, "small", [0], ["label"]):
            content = {"setting": unit.setting, "seconds": 1.0, "metrics": {"accuracy": 0.5}}
            data = {"dataset": "optdigits", "samples": 1797}
            if unit.row.name == "FedAvg":
                data |= {"samples": samples} | fingerprint
            results.write(unit, content | {"data": data})
        found = remarks(compare(table, "small", results, {"optdigits": ""}, [0]))
        return [note for note in found if "optdigits" in note]

    assert notes(1797, {"fingerprint": "ab"}) == ["Data: optdigits (1,797 samples)"]
    assert notes(360, {}) == [
        "Not all values are of the same data, and cannot be compared: "
        "optdigits (1,797 samples) in column `label` (IFCA & more); "
        "optdigits (360 samples) in column `label` (FedAvg)"
    ]
