import numpy as np
import pandas
import pytest
import torch

from bcfl.data.agreement import sorted_clients
from bcfl.data.clients import POOL, ClientData, with_validation
from bcfl.data.streams import at_step
from bcfl.data.view import View


def test_arrays_become_views_and_keep_their_floating_precision():
    data = ClientData.from_arrays("a", ([[1, 2], [3, 4]], [0, 1]), (np.ones((1, 2)), [1]), 3)
    assert data.views["train"].inputs.dtype == torch.float32
    assert data.views["train"].targets.dtype == torch.int64
    assert data.views["test"].inputs.dtype == torch.float64
    assert data.num_samples == {"train": 2, "test": 1}
    assert repr(data) == "ClientData(a: train 2, test 1, group 3)"


def test_regression_targets_stay_numbers():
    data = ClientData.from_arrays("a", (np.ones((2, 3)), np.ones((2, 1), dtype=np.float32)))
    assert data.views["train"].targets.dtype == torch.float32
    assert set(data.views) == {"train"}


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (np.ones((3, 2)), [0, 1], "3 inputs and 2 targets"),
        (np.zeros((0, 2)), np.zeros(0, dtype=int), "client 'a' has no training samples"),
        ([[1.0, np.nan]], [0], "inputs must be finite, got NaN or inf"),
        ([[1.0, np.inf]], [0], "inputs must be finite"),
    ],
)
def test_bad_arrays_are_refused(inputs, targets, message):
    with pytest.raises(ValueError, match=message):
        ClientData.from_arrays("a", (inputs, targets))


def test_integer_inputs_are_no_view():
    with pytest.raises(TypeError, match=r"floating point, got torch\.int64"):
        View(torch.ones(2, 3, dtype=torch.int64), torch.zeros(2))


def test_a_client_needs_a_training_view():
    view = View(torch.ones(1, 2), torch.zeros(1))
    with pytest.raises(ValueError, match=r"must have a view 'train' of .*, got 'test', 'other'"):
        ClientData("a", {"test": view, "other": view})
    with pytest.raises(ValueError, match=r"must have a view 'train' of .*, got no view"):
        ClientData("a", {})


def test_an_empty_test_view_is_allowed():
    data = ClientData.from_arrays("a", (np.ones((1, 2)), [0]), (np.zeros((0, 2)), []))
    assert data.num_samples == {"train": 1, "test": 0}


NUMBERS, ROWS = np.array([0, 1, 0]), np.ones((3, 2))


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ((NUMBERS / 2, NUMBERS), None, r"'train': inputs .* axis of features, got \(3,\); .*1\)`$"),
        (
            (ROWS, NUMBERS),
            (NUMBERS, NUMBERS),
            r"'test': inputs must have .* `numpy.asarray\(inputs\).reshape\(-1",
        ),
        ((ROWS[:, :0], NUMBERS), None, r"'train': inputs must have at least one number .* \(0,\)"),
        ((NUMBERS, ROWS), None, r"'train': .* swapped with the targets, of shape \(3, 2\)\?"),
        ((NUMBERS, ROWS.astype(int)), None, "'train': .* swapped with the targets"),
        ((NUMBERS, np.ones((3, 4, 4))), None, "'train': .* swapped with the targets"),
    ],
)
def test_inputs_without_an_axis_of_features_are_refused(train, test, message):
    with pytest.raises(ValueError, match=f"client 'ann', view {message}"):
        ClientData.from_arrays("ann", train, test)


@pytest.mark.parametrize(
    ("inputs", "targets"),
    [(ROWS.astype(int), NUMBERS), (ROWS, ROWS), (NUMBERS[:, None], ROWS), (ROWS, ROWS.astype(int))],
    ids=["tokens", "regression", "one feature", "labels"],
)
def test_inputs_with_an_axis_of_features_are_taken(inputs, targets):
    data = ClientData.from_arrays("ann", (inputs, targets), ([], []))
    assert data.num_samples == {"train": 3, "test": 0}


class Unreadable:
    """An array in a file, which is read when it is used."""

    def __array__(self, dtype=None, copy=None):
        raise OSError("disk")


def test_errors_of_arrays_that_are_read_late_are_told_with_client_and_view():
    with pytest.raises(ValueError, match="client 'a', view 'test': OSError: disk") as raised:
        ClientData.from_arrays("a", (ROWS, NUMBERS), (Unreadable(), NUMBERS))
    assert isinstance(raised.value.__cause__, OSError)


def test_taking_samples_keeps_their_order():
    view = View(torch.arange(6.0).reshape(3, 2), torch.tensor([5, 6, 7]))
    taken = view.take(torch.tensor([2, 0]))
    assert taken.targets.tolist() == [7, 5]
    assert taken.inputs[:, 0].tolist() == [4.0, 0.0]


def test_clients_are_sorted_by_name(make_client):
    names = [c.client for c in sorted_clients(make_client(n, 2) for n in ("b", "a10", "a9"))]
    assert names == ["a10", "a9", "b"]


def test_no_client_and_equal_names_are_refused(make_client):
    with pytest.raises(ValueError, match="at least one client, got none"):
        sorted_clients([])
    with pytest.raises(ValueError, match=r"must be distinct, got more than one of \['b'\]"):
        sorted_clients([make_client("b", 2), make_client("a", 2), make_client("b", 3)])
    with pytest.raises(TypeError, match="must be a sequence of ClientData, got ClientData"):
        sorted_clients(make_client("a", 2))


def test_the_name_of_the_pool_is_refused():
    data = ClientData.from_arrays(POOL, ([[1.0]], [0]))
    with pytest.raises(ValueError, match=r"must not begin with '\(all samples\)'"):
        sorted_clients([data])


def test_a_view_that_is_not_right_is_named():
    with pytest.raises(ValueError, match="client 'a', view 'test': inputs must be finite"):
        ClientData.from_arrays("a", ([[1.0]], [0]), ([[float("nan")]], [0]))


def test_classes_number_the_labels_of_all_clients_alike():
    x, classes = np.ones((2, 3)), ["cat", "dog", "fox"]
    first = ClientData.from_arrays("a", (x, ["cat", "dog"]), (x, ["fox", "cat"]), classes=classes)
    second = ClientData.from_arrays("b", (x, ["dog", "fox"]), classes=classes)
    assert first.views["train"].targets.tolist() == [0, 1]
    assert first.views["test"].targets.tolist() == [2, 0]
    assert second.views["train"].targets.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"client 'b', view 'train': targets must be among the 3"):
        ClientData.from_arrays("b", (x, ["dog", "cow"]), classes=classes)


def test_clients_with_other_classes_are_refused():
    x, first = np.ones((2, 3)), ["cat", "dog"]
    clients = [
        ClientData.from_arrays("a", (x, first), classes=first),
        ClientData.from_arrays("c", (x, first), classes=np.array(first)),
    ]
    assert [data.classes for data in sorted_clients(clients)] == [("cat", "dog"), tuple(first)]
    bare = ClientData.from_arrays("b", (x, [0, 1]))
    with pytest.raises(ValueError, match=r"or none of them, .* 'a' has .*, 'b' has none"):
        sorted_clients([*clients, bare])
    for other in (["dog", "cat"], ["cat", "dog", "fox"], ["dog", "fox"]):
        odd = ClientData.from_arrays("d", (x, ["dog", "dog"]), classes=other)
        with pytest.raises(ValueError, match=r"same classes .* 'a' has .*, 'd' has .*\['cat',"):
            sorted_clients([*clients, odd])


def test_copies_of_a_client_keep_its_classes():
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": ["no", "yes", "no", "yes"]})
    data = ClientData.from_dataset("a", frame, classes=["no", "yes"])
    assert with_validation(at_step(data, 0), 0.5, 0).classes == ("no", "yes")
