"""Arrays of users become tensors of one kind, which share no memory with what was given."""

import re
from decimal import Decimal
from pathlib import Path

import numpy
import numpy as np
import pandas
import pytest
import torch
from scipy import sparse
from torch.utils.data import TensorDataset

from bcfl import ClientData, View
from bcfl.data.arrays import class_numbers, inputs_tensor, targets_tensor


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (torch.ones(3, 2, dtype=torch.bfloat16), torch.float32),
        (torch.ones(3, 2, dtype=torch.float64), torch.float64),
        (np.ones((3, 2), np.longdouble), torch.float64),
        (np.ones((3, 2), np.float16), torch.float16),
        (torch.ones(3, 2, dtype=torch.int8), torch.float32),
        (torch.ones(3, 2, requires_grad=True), torch.float32),
        (torch.ones(2, 3).T, torch.float32),
        (torch.ones(3, 2, dtype=torch.complex64).conj().imag + 1, torch.float32),
    ],
)
def test_inputs_keep_a_floating_type_that_torch_has(given, dtype):
    found = inputs_tensor(given)
    assert found.dtype == dtype
    assert found.is_contiguous()
    assert not found.requires_grad
    assert torch.equal(found, torch.ones(3, 2, dtype=dtype))


def test_a_read_only_memory_map_is_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
    found = inputs_tensor(np.load(tmp_path / "x.npy", mmap_mode="r"))
    found *= 2
    assert found.sum() == 12


def test_an_array_of_masked_type_without_masked_entries_is_taken():
    assert inputs_tensor(np.ma.masked_array([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            np.ma.masked_array([1.0, 2.0], mask=[1, 0]),
            "not be masked, .* 1 of 2 .* in sample 0",
        ),
        (
            [[1.0, 2.0], np.ma.masked_array([1.0, 2.0], mask=[1, 0])],
            "not be masked, .* 1 of 2 .* in sample 1",
        ),
        (np.ma.masked, "not be masked, got masked entries in 1 of 1 samples"),
        ([[0.5, 1.0], [2.0, np.ma.masked]], "not be masked, .* 1 of 2 .* in sample 1"),
        ([0, np.ma.masked], "not be masked, .* 1 of 2 .* in sample 1"),
        ([0, np.ma.array(3, mask=True)], "not be masked, .* 1 of 2 .* in sample 1"),
        ([[[1.0], np.ma.array([1.0], mask=True)]], "not be masked, .* 1 of 1 .* in sample 0"),
        (["yes", 1.0], r"must be real numbers, got text \(object\); "),
        (pandas.Series([[1.0], [2.0]]), r"objects such as \[1.0\] .* by `numpy\.stack"),
        (torch.ones(2, dtype=torch.complex64), "must be real numbers, got complex numbers"),
        ([[1, 2], [3]], "x must be an array of numbers.* got a list whose parts differ in shape"),
        ([object(), 1.0], "must be real numbers, got objects such as <object"),
        (None, r"got objects such as None \(NoneType\)$"),
        (iter([1.0]), r"got a list_iterator; `list\(values\)` makes a list$"),
        ([Decimal("1")], r"got objects such as Decimal\('1'\) .*`numpy\.asarray\(values, float\)`"),
        ([pandas.Timestamp("2020-01-02")], r"objects such as .* \(Timestamp\)$"),
        (["yes", "no"], r"must be real numbers, got text \(<U3\); "),
        (np.array([[1.0, "yes"]], object), r"must be real numbers, got text \(object\); "),
        (np.array(["2020"], "M8[Y]"), "must be real numbers, got dates"),
        (torch.ones(2, 2).to_sparse(), "x must be a dense tensor.*to_dense"),
        (sparse.csr_array(np.eye(2)), r"x must be a dense array, got a csr_array .*toarray\(\)"),
        (np.array([1, 2.5], object), r"such as 1 \(int\); .* numbers by `numpy\.asarray"),
        (TensorDataset(torch.ones(2, 3), torch.ones(2)), r"got a TensorDataset$"),
        (["1", "2.5"], r"got text \(<U3\); .* become numbers by `numpy\.asarray"),
    ],
)
@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
def test_what_is_not_real_numbers_is_refused(convert, given, words):
    with pytest.raises(TypeError, match=words):
        convert(given, "x")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (
            [[1, None], [2, 3]],
            r"1 of 2 samples, .* None in sample 0 \(from 0\) at \[1\]",
        ),
        ([0, None], r"1 of 2 samples, the first of them None in sample 1 \(from 0\)"),
        (
            pandas.array([1.5, pandas.NA, pandas.NA], "Float64"),
            "2 of 3 .* <NA> in sample 1",
        ),
        (pandas.array([pandas.NA, 2], "Int64"), "1 of 2 samples, .* <NA> in sample 0"),
        ([[0, 1, float("nan")], [0, pandas.NaT, None]], "2 of 2 samples, .* nan in sample 0"),
    ],
)
@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
def test_missing_values_of_all_kinds_are_told_with_their_place(convert, given, place):
    given = np.asarray(given, object)
    with pytest.raises(ValueError, match=f"x must not be missing, got missing values in {place}"):
        convert(given, "x")


@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
def test_a_single_number_is_refused(convert):
    with pytest.raises(ValueError, match="one row per sample"):
        convert(3.0)


def test_a_class_beyond_64_bits_is_refused():
    with pytest.raises(ValueError, match=r"below 2\*\*63, got 18446744073709551615"):
        targets_tensor(np.array([0, 2**64 - 1], np.uint64))


@pytest.mark.parametrize("number", [2**24 + 1, -(2**24) - 1, 20_000_001, 2**53 - 1])
def test_whole_numbers_that_float32_would_round_become_float64(number):
    for given in ([[number]], [[2**25, number]], pandas.DataFrame({"a": [number], "b": [1]})):
        inputs = View.from_arrays(given, [0]).inputs
        assert inputs.dtype is torch.float64
        assert number in inputs
    assert targets_tensor([number]).item() == number


@pytest.mark.parametrize("number", [20_000_000, 2**25, -(2**31), 2**24 + 2, -(2**63)])
def test_large_whole_numbers_that_float32_holds_are_taken(number):
    inputs = inputs_tensor([[0, number]])
    assert (inputs.dtype, inputs[0, 1].item()) == (torch.float32, number)
    assert inputs_tensor(np.array([[2**63]], np.uint64)).item() == 2**63


@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
def test_samples_of_a_list_may_differ_in_type_where_none_is_scaled(convert):
    grey = [np.full((2, 2), 7, "u1"), np.full((2, 2), 8, ">u2"), np.full((2, 2), 9, "i8")]
    assert convert(grey)[:, 0, 0].tolist() == [7, 8, 9]
    assert convert([np.uint8([1]), np.array([2])]).tolist() == [[1], [2]]


def test_text_is_to_be_encoded_by_one_list_for_all_clients():
    with pytest.raises(TypeError, match=r"columns of 0 and 1, by one list of categories for all"):
        inputs_tensor(["cat", "dog"])
    with pytest.raises(TypeError, match=r"one list for all clients.*classes=classes"):
        targets_tensor(["cat", "dog"])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["dog", "fox", "dog"], ["cat", "dog", "fox"]),
        (np.array(["dog", "fox", "dog"]), np.array(["cat", "dog", "fox"])),
        (torch.tensor([5, 7, 5]), (3, 5, 7)),
    ],
)
def test_labels_become_their_places_among_the_classes(labels, classes):
    found = class_numbers(labels, classes)
    assert found.tolist() == [1, 2, 1]
    assert found.dtype == torch.int64


@pytest.mark.parametrize(
    ("labels", "classes", "error", "words"),
    [
        (
            ["cat", "cow"],
            ["cat", "dog"],
            ValueError,
            "among the 2 classes .* 'cow' in sample 1",
        ),
        (
            ["cat", None],
            ["cat"],
            ValueError,
            "targets must not be missing, .* None in sample 1",
        ),
        ([np.str_("cow")], [np.str_("cat")], ValueError, r"classes \['cat'\], got 'cow'"),
        (["cat"], ["cat", "cat"], ValueError, r"classes must be distinct"),
        (
            np.ma.array(["cat", "cat"], mask=[0, 1]),
            ["cat"],
            TypeError,
            "targets must not be masked",
        ),
        ([["cat"]], ["cat"], ValueError, r"one label per sample, got shape \(1, 1\)"),
        (["cat"], [["cat"]], ValueError, r"classes must be a row of labels, .* got shape \(1, 1\)"),
        (["cat"], [], ValueError, r"classes must be a row of labels, at least one"),
        (["c"], "cat", TypeError, r"classes must be a list of all labels, got 'cat'"),
        (["c"], {"c"}, TypeError, r"classes must be a list of all labels, got .*set"),
    ],
)
def test_labels_that_are_none_of_the_classes_are_refused(labels, classes, error, words):
    with pytest.raises(error, match=words):
        class_numbers(labels, classes)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float64"])
def test_missing_values_of_pandas_are_named_whatever_holds_them(dtype):
    given = pandas.array([1, pandas.NA], dtype=dtype)
    for values in (given, pandas.Series(given)):
        words = "(not be missing|finite), got .* 1 of 2 samples, .* in sample 1 "
        with pytest.raises(ValueError, match=words):
            View.from_arrays([[1.0], [2.0]], values)


NUMBERS = [0.0, 1.0, 2.0]
RAGGED, EVEN = np.empty(3, object), np.empty(3, object)
RAGGED[:], EVEN[:] = [[1, 2], [3], [4]], [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        *((convert(NUMBERS), [[0], [1], [2]]) for convert in (list, pandas.Series, np.array)),
        (torch.tensor(NUMBERS), [[0], [1], [2]]),
        *((convert(["0", "2.5"]), [0, 2.5]) for convert in (list, pandas.Series, np.array)),
        ([["0", "2.5"]], [[0, 2.5]]),
        ([Decimal(0), Decimal(2)], [0, 2]),
        (["a", "b", "a"], [[1, 0], [0, 1], [1, 0]]),
        ([["a", "b"], ["b", "b"]], [[1, 0, 0, 1], [0, 1, 0, 1]]),
        ([["a", 1], ["b", 1]], [[1, 0, 0, 0], [0, 1, 0, 0]]),
        (EVEN, [[1, 2], [3, 4], [5, 6]]),
        (map(float, range(3)), [0, 1, 2]),
        ({2: 1}.values(), [1]),
        ({"f": [1, 2], "g": [3, 4]}, [[1, 3], [2, 4]]),
    ],
)
def test_what_is_told_to_be_done_about_inputs_makes_them_right(values, expected):
    with pytest.raises((TypeError, ValueError)) as raised:
        ClientData.from_arrays("ann", (values, [0] * len(expected)))
    remedy = re.search("`(.*?)`", str(raised.value))[1]
    names = {"values": values, "inputs": values, "categories": ["a", "b"]}
    made = eval(remedy, {"numpy": numpy, "pandas": pandas} | names)
    np.testing.assert_array_equal(np.asarray(made, float), expected)


@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
@pytest.mark.parametrize("path", ["x.npy", Path("folder") / "x.npy"])
def test_paths_are_to_be_read_before(convert, path):
    with pytest.raises(
        TypeError, match=r"x must be an array, got the path '.*x\.npy'; .*numpy\.load"
    ):
        convert(path, "x")


def test_rows_that_are_objects_of_several_lengths_are_to_be_padded():
    with pytest.raises(
        TypeError, match=r"such as \[1, 2\] \(list\); rows must agree in shape; pad"
    ):
        inputs_tensor(RAGGED)


@pytest.mark.parametrize(
    "classes",
    [
        pandas.Series(["a", "b"]),
        pandas.Series(["a", "b", "a"], dtype="string").unique(),
        pandas.Index(["a", "b"]),
        np.array(["a", "b"]),
        ("a", "b"),
    ],
)
def test_classes_may_be_any_row_of_labels(classes):
    data = ClientData.from_arrays("ann", (EVEN.tolist(), ["b", "a", "b"]), classes=classes)
    assert data.views["train"].targets.tolist() == [1, 0, 1]
    assert data.classes == ("a", "b")


@pytest.mark.parametrize("several", [{"a", "b"}, ["a", "b"]])
def test_several_labels_of_a_sample_are_no_class(several):
    given, labels = [{"b"} if isinstance(several, set) else ["b"], several], ["a", "b"]
    with pytest.raises(
        TypeError, match=r"x must be one label per sample, got \S+ \((set|list)\); "
    ):
        class_numbers(given, labels, "x")
    rows = [[one in own for one in labels] for own in given]
    assert targets_tensor(rows).tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("labels", [["b", "a", "b"], ["b", 1, "b"]])
def test_what_is_told_to_be_done_about_text_as_labels_numbers_them(labels):
    with pytest.raises(TypeError) as raised:
        targets_tensor(labels)
    listed, numbered = re.findall("`(.*?)`", str(raised.value))[:2]
    classes = eval(listed.removeprefix("classes = "), {"all_labels": labels})
    expected = eval(numbered, {"classes": classes, "labels": labels})
    assert class_numbers(labels, classes).tolist() == expected == [1, 0, 1]
    for given in (set(labels), dict.fromkeys(classes), iter(classes)):
        with pytest.raises(TypeError, match=r"classes must be a list of all labels, got") as raised:
            class_numbers(labels, given)
        made = eval(re.search("`(.*)`", str(raised.value))[1], {"classes": given})
        assert class_numbers(labels, made).tolist() == expected
