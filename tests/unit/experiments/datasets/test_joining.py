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


def test_domains_that_may_be_of_several_scales_are_told():
    kept = datasets.from_numpy(np.array([[0.0, 9.0], [232.0, 1.0]]), [0, 1], scaled=False)
    message = r"may be of several scales, got a up to 1, b up to 232; if they are, read all with"
    with pytest.warns(DataWarning, match=message):
        both = datasets.joined("both", {"a": own([0, 1]), "b": kept})
    np.testing.assert_array_equal(both.inputs[2:], kept.inputs)


@pytest.mark.parametrize(
    "names",
    [
        (("0", "1"), ("0 - zero", "1 - one")),
        (("cat", "dog"), ("Cat", "Dog")),
        (("cat", "hot dog"), ("cat", "Hot_Dog")),
        (("cat", "dog"), ("cat", " dog ")),
        (("cat", "dog"), ("dog", "fox"), ("fox", "cow")),
    ],
)
def test_names_that_differ_in_spelling_alone_are_refused(names):
    parts = {str(number): own([0, 1], one) for number, one in enumerate(names)}
    with pytest.raises(DataError, match=r"spelled alike, but class [01] .*class_names=None"):
        datasets.joined("both", parts)
    bare = {key: replace(part, class_names=None) for key, part in parts.items()}
    assert datasets.joined("both", bare).num_classes == 2


def test_names_that_differ_in_case_within_one_domain_are_classes_of_their_own():
    parts = {"a": own([0, 1, 2], ("a", "A", "b")), "b": own([0, 1], ("A", "b"))}
    with pytest.warns(DataWarning, match=r"to 3 in all: b lacks a$"):
        both = datasets.joined("both", parts)
    assert both.targets.tolist() == [0, 1, 2, 1, 2]


def test_domains_are_data_sets():
    with pytest.raises(DataError, match=r"a mapping from names to data sets, .*, got a int in it"):
        datasets.joined("both", {"a": own([0, 1]), "b": 3})
