"""Several data sets as the domains of one: names of classes, scales."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError, DataWarning


def own(labels, names=None):
    inputs = np.linspace(0, 1, 2 * len(labels)).reshape(-1, 2)
    return replace(datasets.from_numpy(inputs, labels), class_names=names)


def test_classes_in_another_order_are_matched_by_their_names():
    parts = {"a": own([0, 1, 1], ("cat", "dog")), "b": own([0, 1, 0], ("dog", "cat"))}
    both = datasets.joined("both", parts)
    assert both.class_names == ("cat", "dog")
    assert both.targets.tolist() == [0, 1, 1, 1, 0, 1]


def test_classes_that_only_some_domains_have_are_told():
    parts = {"a": own([0, 1], ("cat", "dog")), "b": own([0, 1], ("dog", "fox"))}
    with pytest.warns(DataWarning, match=r"to 3 in all: a lacks fox; b lacks cat"):
        both = datasets.joined("both", parts)
    assert (both.class_names, both.num_classes) == (("cat", "dog", "fox"), 3)
    assert both.targets.tolist() == [0, 1, 1, 2]


def test_domains_without_names_are_matched_by_number():
    both = datasets.joined("both", {"a": own([0, 1]), "b": own([1, 0], ("dog", "cat"))})
    assert (both.class_names, both.targets.tolist()) == (("dog", "cat"), [0, 1, 1, 0])


@pytest.mark.parametrize(
    "parts",
    [
        {"a": own([0, 1]), "b": own([0, 1], ("x", "y")), "c": own([0, 1], ("y", "x"))},
        {"a": own([0, 1], ("x", "x")), "b": own([0, 1], ("x", "y"))},
        {
            "a": own([[0, 1], [1, 1]], ("x", "y")),
            "b": own([[0, 1], [1, 1]], ("y", "x")),
        },
    ],
)
def test_names_that_cannot_be_matched_are_refused(parts):
    with pytest.raises(DataError, match=r"the same names of classes .*class_names=None"):
        datasets.joined("both", parts)


def test_domains_of_different_scales_are_refused():
    kept = datasets.from_numpy(np.array([[0.0, 9.0], [232.0, 1.0]]), [0, 1], scaled=False)
    message = r"all domains must be of one scale, got a float32 up to 1, b float32 up to 232; read"
    with pytest.raises(DataError, match=message):
        datasets.joined("both", {"a": own([0, 1]), "b": kept})


def test_domains_are_data_sets():
    with pytest.raises(DataError, match=r"a mapping from names to data sets, .*, got a int in it"):
        datasets.joined("both", {"a": own([0, 1]), "b": 3})
