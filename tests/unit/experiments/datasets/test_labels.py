"""Labels and writers as numbers."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments import datasets
from experiments.datasets import DataError, Dataset

INPUTS = np.linspace(0, 1, 12).reshape(6, 2)

LABELS = np.array([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize("of_test", [LABELS, LABELS[:, None]])
def test_one_column_of_labels_is_a_class_for_each_sample(of_test):
    train = INPUTS, LABELS.astype(np.uint8)[:, None]
    dataset = Dataset.from_arrays("column", train, (INPUTS, of_test))
    assert dataset.targets.tolist() == [*LABELS, *LABELS]
    assert (dataset.label_sets, dataset.num_native_test) == (None, 6)


def test_a_test_part_without_labels_is_told():
    with pytest.raises(DataError, match=r"\(test part\): all labels are -1, .*published without"):
        Dataset.from_arrays("hidden", (INPUTS, LABELS), (INPUTS, np.full(6, -1)))


@pytest.mark.parametrize("kind", [int, float, bool])
def test_one_hot_rows_are_classes_where_each_row_of_all_parts_is_one(kind):
    rows = np.eye(4)[LABELS].astype(kind)
    found = Dataset.from_arrays("rows", (INPUTS, rows), (INPUTS, rows[::-1]))
    assert (found.label_sets, found.num_classes) == (None, 4)
    assert found.targets.tolist() == [*LABELS, *LABELS[::-1]]
    several = rows.copy()
    several[5, 0] = 1
    found = Dataset.from_arrays("rows", (INPUTS, rows), (INPUTS, several))
    np.testing.assert_array_equal(found.labelled(found.targets), np.concatenate([rows, several]))


@pytest.mark.parametrize("labels", [LABELS.astype(float), LABELS > 0, (LABELS > 0)[:, None]])
def test_whole_labels_of_any_type_are_classes(labels):
    found = Dataset.from_arrays("whole", (INPUTS, labels))
    assert found.targets.tolist() == labels.astype(int).ravel().tolist()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 2, 1, 2], [0, 1, 0, 1]),
        (pd.Series([1, 2, 1, 2]), [0, 1, 0, 1]),
        (["0", "1.0", "0", "1"], [0, 1, 0, 1]),
        (pd.Series(["0", "1", "0", "1"]), [0, 1, 0, 1]),
        (["b", "a", "b", "a"], [1, 0, 1, 0]),
        (pd.Series(["b", "a", "b", "a"]), [1, 0, 1, 0]),
        (["a", 1, "a", 1], [1, 0, 1, 0]),
        ([5, 7, 5, 7], [0, 1, 0, 1]),
        ([0.0, 1e20, 0.0, 1e20], [0, 1, 0, 1]),
        ([0, 2**63, 0, 2**63], [0, 1, 0, 1]),
    ],
)
def test_what_is_told_to_be_done_about_labels_makes_them_right(labels, expected):
    inputs = np.eye(4)
    with pytest.raises(DataError) as raised:
        Dataset.from_arrays("own", (inputs, labels))
    told = re.findall("`(.*?)`", str(raised.value))
    remedy = next(one for one in told if "numpy" in one).removeprefix("classes, y = ")
    made = eval(remedy, {"numpy": np, "y": labels})
    made = made[1] if isinstance(made, tuple) else made
    assert Dataset.from_arrays("own", (inputs, made)).targets.tolist() == expected


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_of_labels_are_told_to_become_rows(kind):
    own = [kind(one) for one in ([0], [1], [0, 1], [])]
    with pytest.raises(
        DataError, match=r"become a row of 0 and 1 each, .*`\[one in own for one in"
    ):
        Dataset.from_arrays("own", (np.eye(4), own))
    rows = [[one in each for one in (0, 1)] for each in own]
    found = Dataset.from_arrays("own", (np.eye(4), rows))
    assert found.labelled(found.targets).tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize("turned", [False, True])
def test_parts_of_labels_of_two_kinds_are_told(turned):
    parts = [(np.eye(2), [0, 1]), (np.eye(2), [[1, 0], [0, 1]])]
    with pytest.raises(
        DataError, match=r"in all parts alike, got training .*; .*argmax\(y, axis=1\)"
    ):
        Dataset.from_arrays("own", *parts[:: -1 if turned else 1])
    same = (np.eye(2), np.argmax(parts[1][1], axis=1))
    assert Dataset.from_arrays("own", parts[0], same).targets.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("writers", "expected"),
    [
        (np.array([2**63 + 1, 2**63 + 2, 7, 7], np.uint64), [1, 2, 0, 0]),
        ([1, 1, 4, 4], [1, 1, 4, 4]),
        ([1.0, 1.0, 4.0, 4.0], [1, 1, 4, 4]),
        (["b", "b", "a", "c"], [1, 1, 0, 2]),
        ([True, False, True, False], [1, 0, 1, 0]),
    ],
)
def test_writers_are_read_by_one_rule(writers, expected):
    inputs, labels = np.eye(4), [0, 1, 0, 1]
    own = datasets.from_numpy(inputs, labels, writers=writers)
    for found in (own, replace(datasets.from_numpy(inputs, labels), writers=writers)):
        assert found.writers.tolist() == expected


@pytest.mark.parametrize("writers", [[2**63 + 1, 2**63 + 2, 7, 7], [0.0, 1e20, 1.0, 1.0]])
def test_writers_that_are_no_exact_numbers_can_be_names(writers):
    with pytest.raises(
        DataError, match=r"got float64 of shape .*; `\[\*map\(str, writers\)\]` makes"
    ):
        datasets.from_numpy(np.eye(4), [0, 1, 0, 1], writers=writers)
    found = datasets.from_numpy(np.eye(4), [0, 1, 0, 1], writers=[*map(str, writers)])
    assert len(set(found.writers.tolist())) == 3
