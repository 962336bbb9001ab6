"""Arrays of users become tensors of one kind, which share no memory with what was given."""

import numpy as np
import pytest
import torch

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
        (np.ma.masked_array([1.0, 2.0], mask=[1, 0]), "must not be masked"),
        (torch.ones(2, dtype=torch.complex64), "must be real numbers, got complex numbers"),
        ([[1, 2], [3]], "x must be an array of numbers.* got a list whose parts differ in shape"),
        ([None, 1.0], "must be real numbers, got objects"),
        (["yes", "no"], r"must be real numbers, got text \(<U3\); "),
        (np.array([[1.0, "yes"]], object), r"must be real numbers, got text \(object\); "),
        (np.array(["2020"], "M8[Y]"), "must be real numbers, got dates"),
        (torch.ones(2, 2).to_sparse(), "x must be a dense tensor"),
    ],
)
@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
def test_what_is_not_real_numbers_is_refused(convert, given, words):
    with pytest.raises(TypeError, match=words):
        convert(given, "x")


@pytest.mark.parametrize("convert", [inputs_tensor, targets_tensor])
def test_a_single_number_is_refused(convert):
    with pytest.raises(ValueError, match="one row per sample"):
        convert(3.0)


def test_a_class_beyond_64_bits_is_refused():
    with pytest.raises(ValueError, match=r"below 2\*\*63, got 18446744073709551615"):
        targets_tensor(np.array([0, 2**64 - 1], np.uint64))


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
        (["cat", "cow"], ["cat", "dog"], ValueError, r"among the 2 classes .* got 'cow'"),
        (["cat"], ["cat", "cat"], ValueError, r"classes must be distinct"),
        ([["cat"]], ["cat"], ValueError, r"one label per sample and class, got shapes \(1, 1\)"),
        (["c"], "cat", TypeError, r"classes must be a list of all labels, got 'cat'"),
        (["c"], {"c"}, TypeError, r"classes must be a list of all labels, got .*set"),
    ],
)
def test_labels_that_are_none_of_the_classes_are_refused(labels, classes, error, words):
    with pytest.raises(error, match=words):
        class_numbers(labels, classes)
