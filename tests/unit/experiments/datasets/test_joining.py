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


def renamed(part, names):
    return replace(part, class_names=names)


def test_classes_without_a_name_in_common_are_classes_of_their_own():
    parts = {"a": own([0, 1], ("x", "y")), "b": own([0, 1, 1], ("p", "q"))}
    message = r"to 4 in all: a lacks p, q; b lacks x, y; where two names .* make them equal by"
    with pytest.warns(DataWarning, match=message):
        both = datasets.joined("both", parts)
    assert (both.class_names, both.targets.tolist()) == (("x", "y", "p", "q"), [0, 1, 2, 3, 3])
    equal = datasets.joined("both", parts | {"b": renamed(parts["b"], ("x", "y"))})
    assert equal.targets.tolist() == [0, 1, 0, 1, 1]


def test_classes_in_common_may_be_those_of_some_domains_alone():
    names = {"a": ("x", "y"), "b": ("y", "z"), "c": ("z", "w")}
    with pytest.warns(DataWarning, match=r"to 4 in all: a lacks z, w; b lacks x, w; c lacks x, y"):
        both = datasets.joined("both", {key: own([0, 1], one) for key, one in names.items()})
    assert both.targets.tolist() == [0, 1, 1, 2, 2, 3]


def test_many_classes_that_a_domain_lacks_are_not_all_named():
    parts = {"a": own(range(6), [*"abcdef"]), "b": own([0], ["g"])}
    with pytest.warns(DataWarning, match=r"a lacks g; b lacks a, b, c, d, e, \.\.\.;"):
        datasets.joined("both", parts)


ROWS = [[0, 1], [1, 1]]


def test_labels_in_another_order_are_matched_by_their_names():
    parts = {"a": own(ROWS, ("x", "y")), "b": own([*ROWS, [1, 0]], ("y", "x"))}
    both = datasets.joined("both", parts)
    assert both.class_names == ("x", "y")
    assert both.labelled(both.targets).tolist() == [*ROWS, [1, 0], [1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("parts", "message", "names"),
    [
        (
            {"a": own([0, 1]), "b": own([0, 1], ("x", "y")), "c": own([0, 1], ("y", "x"))},
            r"a has no names of classes, .* class 0 is 'x' in b and 'y' in c; dataclasses\.repl",
            {"a": ("x", "y")},
        ),
        (
            {"a": own([0, 1], ("x", "x")), "b": own([0, 1], ("x", "y"))},
            r"a has several classes called 'x'; give them names by dataclasses\.replace",
            {"a": ("x", "y")},
        ),
        (
            {"a": own(ROWS, ("x", "y")), "b": own(ROWS, ("x", "z"))},
            r"the same labels in all domains, but a lacks z; b lacks y; make columns of 0 and 1",
            {"b": ("x", "y")},
        ),
    ],
)
def test_names_that_cannot_be_matched_are_refused(parts, message, names):
    with pytest.raises(DataError, match=f"'both': .*{message}"):
        datasets.joined("both", parts)
    given = {key: renamed(parts[key], one) for key, one in names.items()}
    assert set(datasets.joined("both", parts | given).class_names) == {"x", "y"}


def test_classes_beside_labels_are_told_apart_and_become_labels():
    parts = {"a": own(ROWS), "b": own([[0, 1], [1, 0]])}
    message = (
        r"a: inputs \(2,\), 2 labels, any number for a sample; b: inputs \(2,\), 2 classes; for"
    )
    with pytest.raises(DataError, match=message):
        datasets.joined("both", parts)
    parts["b"] = replace(parts["b"], label_sets=np.eye(parts["b"].num_classes, dtype=bool))
    both = datasets.joined("both", parts)
    assert both.labelled(both.targets).tolist() == [*ROWS, [0, 1], [1, 0]]


def test_domains_that_may_be_of_several_scales_are_told():
    kept = datasets.from_numpy(np.array([[0.0, 9.0], [232.0, 1.0]]), [0, 1], scaled=False)
    message = r"may be of several scales, got a up to 1, b up to 232; if they are, read all with"
    with pytest.warns(DataWarning, match=message):
        both = datasets.joined("both", {"a": own([0, 1]), "b": kept})
    np.testing.assert_array_equal(both.inputs[2:], kept.inputs)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        ((("cat", "dog"), ("Cat", "Dog")), "'cat' in 0 and 'Cat' in 1"),
        ((("cat", "dog"), ("cat", " dog ")), "'dog' in 0 and ' dog ' in 1"),
        ((("x", "y"), ("y", "z"), ("z", "X")), "'x' in 0 and 'X' in 2"),
    ],
)
def test_names_that_differ_in_spelling_alone_are_refused(names, pair):
    parts = {str(number): own([0, 1], one) for number, one in enumerate(names)}
    with pytest.raises(DataError, match=f"'both': {pair} differ in case, or blanks around"):
        datasets.joined("both", parts)
    alike = {key: renamed(part, names[0]) for key, part in parts.items()}
    assert datasets.joined("both", alike).targets.tolist() == [0, 1] * len(names)


@pytest.mark.parametrize(
    "names",
    [
        (("3 rooms", "4 rooms"), ("4 rooms", "5 rooms")),
        (("zero", "one"), ("0 - zero", "1 - one")),
        (("cat", "hot dog"), ("cat", "hot_dog")),
    ],
)
def test_names_that_differ_in_more_are_classes_of_their_own(names):
    with pytest.warns(DataWarning, match=r"matched by name to [34] in all"):
        datasets.joined("both", {str(n): own([0, 1], one) for n, one in enumerate(names)})


def test_names_that_differ_in_case_within_one_domain_are_classes_of_their_own():
    parts = {"a": own([0, 1, 2], ("a", "A", "b")), "b": own([0, 1], ("A", "b"))}
    with pytest.warns(DataWarning, match=r"to 3 in all: b lacks a;"):
        both = datasets.joined("both", parts)
    assert both.targets.tolist() == [0, 1, 2, 1, 2]


def test_domains_are_data_sets():
    with pytest.raises(DataError, match=r"a mapping from names to data sets, .*, got a int in it"):
        datasets.joined("both", {"a": own([0, 1]), "b": 3})


def test_domains_have_names_of_their_own():
    one = datasets.from_numpy([[0.0], [1.0]], [0, 1])
    with pytest.raises(DataError, match=r"domain_names must be distinct, got \('1', '1'\)"):
        datasets.joined("both", {1: one, "1": one})
