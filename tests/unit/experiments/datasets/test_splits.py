"""Where samples of validation go."""

import pytest

from experiments.datasets.splits import names_of_parts, with_test


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["training"], ["training"]),
        (["training", "test"], ["training", "test"]),
        (["test", "validation", "training"], ["training", "validation", "test"]),
    ],
)
def test_parts_are_in_one_order(given, expected):
    found = with_test(dict.fromkeys(given, 0))
    assert list(found) == expected


def test_samples_of_validation_are_the_test_set_where_there_is_no_other():
    assert with_test({"training": 1, "validation": 2}) == {"training": 1, "test": 2}


@pytest.mark.parametrize("none", [[], ([], [])])
def test_validation_without_samples_is_left_out(none):
    assert with_test({"training": [1], "validation": none}) == {"training": [1]}
    assert list(with_test({"training": [1], "validation": none, "test": [2]})) == [
        "training",
        "test",
    ]
    assert list(with_test({"training": [1], "validation": ([], [1])})) == ["training", "test"]


def test_the_first_name_of_each_part_is_taken():
    there = ["testing", "dev", "training", "train", "valid", "more"]
    found = {"training": "train", "validation": "valid", "test": "testing"}
    assert names_of_parts(there) == found
