"""Names of classes of data sets as the classes of clients."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from bcfl import ClientData, Federation, methods
from bcfl.runtime import DataWarning
from experiments import datasets

KINDS = ["cat", "dog", "fox"]


def folder(labels, names=KINDS):
    """As `ImageFolder` of torchvision."""
    data = TensorDataset(torch.eye(len(labels), 4), torch.tensor(labels))
    data.classes = names
    return data


class Column(list):
    """A data set of Hugging Face with one column of classes."""

    column_names = ("x", "label")

    def __init__(self, labels, names=KINDS):
        super().__init__(labels)
        self.features = {"label": SimpleNamespace(names=names), "x": None}

    def __getitem__(self, name):
        return np.eye(len(self), 4) if name == "x" else [*self]


def federation(*clients, outputs=3):
    return Federation(clients, lambda: torch.nn.Linear(4, outputs), methods.fedavg())


@pytest.mark.parametrize(
    "data",
    [folder([0, 2, 1]), Column([0, 2, 1]), DataLoader(folder([0, 2, 1]), batch_size=2)],
    ids=["torch", "hugging face", "loader"],
)
def test_names_of_a_data_set_are_the_classes_of_clients_and_runs(data):
    clients = [ClientData.from_dataset(name, data, data) for name in "ab"]
    assert clients[0].classes == tuple(KINDS)
    assert clients[0].views["train"].targets.tolist() == [0, 2, 1]
    run = federation(*clients).run(1)
    assert run.classes == tuple(KINDS)
    x = np.eye(3, 4)
    by_name = run.predict_new(x, adaptation=(x, ["cat", "fox", "dog"])).mean
    np.testing.assert_array_equal(by_name, run.predict_new(x, adaptation=(x, [0, 2, 1])).mean)


@pytest.mark.parametrize("make", [folder, Column])
def test_lists_that_contradict_each_other_are_refused_with_what_mends_them(make):
    """As where each client has a folder of its own, and not all classes."""
    near, far = make([0, 1, 1], ["cat", "dog"]), make([0, 1, 0], ["dog", "fox"])
    clients = [ClientData.from_dataset(*one) for one in (("a", near), ("b", far))]
    with pytest.raises(ValueError, match=r"same classes .*'a' has .*, 'b' has") as told:
        federation(*clients)
    options = eval(re.search(r"classes=(\[.*\])", str(told.value))[1])
    mended = [ClientData.from_dataset(*one, classes=options) for one in (("a", near), ("b", far))]
    assert [one.views["train"].targets.tolist() for one in mended] == [[0, 1, 1], [1, 2, 1]]
    assert federation(*mended).classes == tuple(KINDS)
    with pytest.raises(ValueError, match=r"'a': .*'cat' in train and 'dog' in test; classes=\["):
        ClientData.from_dataset("a", near, far)
    assert ClientData.from_dataset("a", near, far, classes=KINDS).views["test"].targets[1] == 2


def test_clients_with_and_without_names_are_not_mixed():
    named, bare = folder([0, 1, 2]), Subset(folder([0, 1, 2]), range(3))
    clients = [ClientData.from_dataset(*one) for one in (("a", named), ("b", bare))]
    with pytest.raises(ValueError, match=r"'a' has .*, 'b' has none") as told:
        federation(*clients)
    remedy = re.findall(r"`([^`]+)`", str(told.value))[0]
    scope = {"dataclasses": dataclasses, "client": clients[1]}
    assert federation(clients[0], eval(remedy, scope)).classes == tuple(KINDS)
    few = [ClientData.from_dataset(name, folder([0, 1])) for name in "ab"]
    with pytest.raises(
        ValueError, match="classes must be as many as the network's outputs"
    ) as told:
        federation(*few, outputs=2)
    remedy = re.findall(r"`([^`]+)`", str(told.value))[0]
    made = [eval(remedy, {"dataclasses": dataclasses, "client": one}) for one in few]
    assert federation(*made, outputs=2).classes == ()


def turned(labels):
    data = folder(labels)
    data.target_transform = int
    return data


@pytest.mark.parametrize(
    "make",
    [
        lambda: Subset(folder([0, 1]), range(2)),
        lambda: ConcatDataset([folder([0, 1]), folder([2, 0])]),
        lambda: turned([0, 1]),
        lambda: DataLoader(turned([0, 1])),
        lambda: folder([0, 1], ["cat", 3]),
        lambda: folder([0, 1], None),
    ],
)
def test_data_sets_without_names_of_their_labels_give_none(make):
    assert ClientData.from_dataset("a", make()).classes == ()
    assert datasets.from_torch(make()).class_names is None


def test_names_are_no_classes_of_numbers_and_need_to_be_distinct():
    assert ClientData.from_dataset("a", folder([0.5, 1.0])).classes == ()
    assert ClientData.from_dataset("a", folder([0, 1], ["cat", "cat"])).classes == ()
    rows = ClientData.from_dataset("a", folder([[0, 1], [1, 1]], ["old", "new"]))
    assert rows.classes == ("old", "new")


@pytest.mark.parametrize(
    ("labels", "got"), [([0, 3], "labels up to 3"), ([[0, 1], [1, 1]], "rows of 2 labels")]
)
def test_names_of_other_classes_are_left_out(labels, got):
    data, message = folder(labels), f"3 names of classes left out, as there are {got}; data"
    with pytest.warns(DataWarning, match=rf"client 'a': {message}"):
        assert ClientData.from_dataset("a", data).classes == ()
    if labels == [0, 3]:
        data = folder([0, 1, 2, 3])
    with pytest.warns(DataWarning, match=message):
        assert datasets.from_torch(data).class_names is None


def test_the_last_classes_may_be_absent_from_a_view():
    data = ClientData.from_dataset("a", folder([0, 1], ["cat", "dog"]), folder([2, 0]))
    assert data.classes == tuple(KINDS)
    assert data.views["test"].targets.tolist() == [2, 0]
