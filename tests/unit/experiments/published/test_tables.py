"""The tables of the papers: what they run, what was printed, and mistakes in their files."""

import re
from itertools import product

import pytest

from experiments.published import reading
from experiments.published.results import CHECKOUT, Results
from experiments.published.table import SCALES
from experiments.published.units import seeds_of, units_of


@pytest.mark.parametrize("name", reading.names())
def test_a_table_of_a_paper_builds_all_its_scenarios_and_methods(name):
    table = reading.load(name)
    for unit in units_of(table, "paper", seeds=[0]):
        unit.scenario().build(unit.label)
    small = units_of(table, "small", seeds=[0])
    for unit in {unit.column.name: unit for unit in small}.values():
        unit.scenario()
    assert len({unit.name for unit in small}) == len(small)
    assert all(seeds_of(table, scale) for scale in SCALES)


def test_centralised_training_of_each_group_has_partitions_with_groups():
    rows = {
        (unit.scenario().partition.name, unit.row.method)
        for name in ("faacl/3.1", "faacl/3.2", "faacl/3.3", "faacl/3.6")
        for unit in units_of(reading.load(name), "small", seeds=[0])
        if unit.row.name == "Centralize"
    }
    assert rows == {
        ("iid", "centralised"),
        ("writers", "centralised"),
        ("label-halves", "centralised-groups"),
        ("merged-classes", "centralised-groups"),
    }


@pytest.mark.parametrize(
    ("name", "column", "row", "metric", "text"),
    [
        ("bcfl/1", "fashion-mnist", "BCFL-MH-3", "F1", "93.70 ± 3.77"),
        ("bcfl/1", "cifar-10", "WeCFL", "Acc", "72.91 ± 0.25"),
        ("bcfl/1", "digits-five", "BCFL-MH-6-W", "Acc", "96.22 ± 0.00"),
        ("bcfl/7", "amazon-review", "BCFL-C-3", "F1", "88.3"),
        ("bcfl/8", "k2", "BCFL-MH-6", "Acc", "87.21"),
        ("bcfl/9", "k6", "BCFL-MH-3", "F1", "83.25"),
        ("ma2023/3.1", "cifar-10-3-2-class-k10", "WeCFL", "F1", "50.65 ± 2.15"),
        ("ma2023/3.4", "pathmnist-2-class-k5", "FeSEM", "Acc", "64.46 ± 6.12"),
        ("ma2023/4.3", "fashion-mnist-dirichlet-0.1-k10", "WeCFL-CON-para", "F1", "81.7 ± 1.02"),
        ("ma2023/5.2", "tissuemnist-dirichlet-0.1-10-k10", "IFCA-CKS", "Acc", "34.54 ± 26.08"),
        ("ma2023/6.4", "pathmnist-dirichlet-0.1-k5", "WeCFL-CON&CKS", "Acc", "76.45 ± 1.6"),
        ("ma2023/7.3", "fashion-mnist-dirichlet-0.1-k10", "IFCA-CAM", "Acc", "95.7 ± 1.19"),
        ("ma2023/7.5", "cifar-10", "FedAvg-Finetune+IFCA-Finetune", "F1", "39.51 ± 1.94"),
        ("ma2023/7.6", "cifar-10", "IFCA-CAM, 50+50", "Communication", "6x"),
        ("cam/2", "cifar-10-2-class-k10", "FeSEM-CAM", "Acc", "69.88 ± 1.7"),
        ("ocfl/1", "mnist-15-separate-balanced", "OCFL-AFF", "AMI", "0.27"),
        ("ocfl/1", "fashion-mnist-30-overlapping-imbalanced", "BCL", "COM", "0.0036"),
        ("ocfl/1", "cifar-10-30-separate-imbalanced", "OCFL-HDB", "RAND", "0.88"),
        ("faacl/3.1", "mnist", "FAACL", "Acc", "96.12 ± 0.99"),
        ("faacl/3.2", "sent140", "FedDrift", "Clusters", "14"),
        ("faacl/3.5", "cifar-10", "FedAvg", "Acc", "52.91 ± 0.41"),
        ("faacl/3.7", "a2", "FAACL", "Mean", "20.4"),
        ("faacl/4.4", "fashion-mnist-a2", "FedWeIT", "Acc", "64.28 ± 0.37"),
    ],
)
def test_values_are_as_printed(name, column, row, metric, text):
    assert reading.load(name).cell(column, row, metric).text == text


def test_what_is_left_out_is_of_a_paper_and_no_table():
    known = reading.names()
    papers = {name.partition("/")[0] for name in known}
    names = [name for entry in reading.left_out() for name in entry.names]
    assert names == [name.lower() for name in dict.fromkeys(names)]
    assert not set(names) & set(known)
    assert {name.partition("/")[0] for name in names} <= papers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colums": []}, "Did you mean 'columns'?"),
        ({"grid": {"mu": 0.1}}, "[grid] needs a list of values of 'mu', got 0.1"),
        ({"printed": {"lable": {}}}, "Did you mean 'label'?"),
        ({"printed": {"label": {"FedAvg": ["1", "2"]}}}, "needs 1 values, got 2"),
        ({"broken": [{"reason": "r", "rows": ["FedAv"]}]}, "Did you mean 'FedAvg'?"),
        (
            {"figures": [{"kind": "pie", "metrics": [], "titles": []}]},
            "must be curves, bars, segments",
        ),
        (
            {"figures": [{"kind": "segments", "metrics": ["ari"], "titles": ["ARI"]}]},
            "segments have two ends",
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused(content, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        reading.from_table("tiny/1", content | change)


def test_every_result_of_the_repository_is_that_of_a_unit():
    results = Results(CHECKOUT / "experiments" / "results")
    paths = set(results.folder.glob("*/*/*/*--seed-*.json"))
    assert paths
    tables = [reading.load(name) for name in reading.names()]
    for table, scale in product(tables, SCALES):
        folder = results.of_table(table.results_name, scale)
        if not any(path.parent == folder for path in paths):
            continue
        for unit in units_of(table, scale, range(3)):
            if results.path(unit) in paths and results.find(unit) is not None:
                paths.remove(results.path(unit))
    assert not paths


def test_a_key_of_a_scenario_that_is_left_out_has_its_default(tmp_path):
    results = Results(tmp_path)
    unit = units_of(reading.load("bcfl/1"), "small")[0]
    stated = {**unit.setting, "federation": {**unit.setting["federation"], "beliefs": True}}
    results.write(unit, {"setting": stated, "metrics": {}})
    assert results.find(unit) is not None
    other = {**stated, "federation": {**stated["federation"], "beliefs": False}}
    results.write(unit, {"setting": other, "metrics": {}})
    assert results.find(unit) is None


def test_units_record_no_beliefs_and_a_result_with_them_is_still_theirs(tmp_path):
    results = Results(tmp_path)
    unit = units_of(reading.load("bcfl/1"), "small")[0]
    assert not unit.scenario().federation.beliefs
    assert "beliefs" not in unit.setting["federation"]
    stated = {**unit.setting, "federation": {**unit.setting["federation"], "beliefs": True}}
    results.write(unit, {"setting": stated, "metrics": {}})
    assert results.find(unit) is not None
