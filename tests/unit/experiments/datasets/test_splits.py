"""Where samples of validation go."""

import pytest

from experiments.datasets.splits import with_test


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
