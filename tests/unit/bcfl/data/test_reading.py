"""Samples that cannot be read are told with the remedy, and each is read once."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from bcfl import ClientData
from bcfl.runtime import DataWarning
from experiments import datasets
from tests.unit.bcfl.data.small_sources import FRAME, Columns, Endless, Mappings, X, Y, hugging_face


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(X[0], 0)])


class Short(TensorDataset):
    def __len__(self):
        return 7


class Damaged(Mappings):
    """One of the samples cannot be read, or lacks a name."""

    def __init__(self, index, error=None):
        self.index, self.error = index, error

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index != self.index:
            return sample
        if self.error is not None:
            raise self.error
        return {"target": sample["target"]}


ERRORS = [
    FileNotFoundError("scan"),
    RuntimeError("scan"),
    ZeroDivisionError("scan"),
    KeyError("scan"),
    IndexError("scan"),
    TypeError("scan"),
    ValueError("scan"),
    StopIteration("scan"),
    json.JSONDecodeError("scan", "{", 1),
    UnicodeDecodeError("utf-8", b"x", 0, 1, "scan"),
]
"""The last two cannot be made by a text alone."""


class Failing(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 3:
            raise OSError("scan")
        return X[index], 0


class Unread(Columns):
    def __getitem__(self, name):
        if name == "label":
            raise OSError("scan")
        return super().__getitem__(name)


class Lost(Dataset):
    def __len__(self):
        raise OSError("scan")

    def __getitem__(self, index):
        return X[index], 0


class Augmented(Dataset):
    """As data sets with random transforms: other numbers whenever a sample is read."""

    read = 0

    def __len__(self):
        return 2

    def __getitem__(self, index):
        self.read += 1
        return torch.rand(3), index


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (Endless(), TypeError, r"view 'train': data must have a length, .*islice"),
        (Stream(), TypeError, "data must have a length"),
        (DataLoader(Stream()), TypeError, "data must have a length"),
        (Short(X, Y), ValueError, "numbered from 0, but sample 6 of Short raised IndexError"),
        ([], ValueError, "at least one sample"),
        ([X[0], X[1]], TypeError, "pairs of an input and a target, got Tensor as sample 0 of list"),
        ([(X[0], 0), (X[1],)], TypeError, r"got a tuple of 1 as sample 1 of list"),
        ([(X[0], 0), ([[1.0], [1.0, 2.0]], 0)], ValueError, "sample 1 of list raised ValueError"),
        ([(X[0], 0), (X, 0)], ValueError, r"agree in shape, got \[\(2,\), \(6, 2\)\]; pad or crop"),
        ([(X[0], 0), (None, 0)], ValueError, "samples must not be missing, .* None in sample 1"),
        (
            [(X[0], 0), (np.ma.array([0.1, 0.9], mask=[0, 1]), 0)],
            ValueError,
            "sample 1 of list raised TypeError: it must not be masked",
        ),
        ({"train": FRAME}, TypeError, r"one split with its samples, got splits \['train'\]"),
        (FRAME[["a", "b"]], ValueError, "targets must name the column of the targets"),
        (None, ValueError, "no training samples"),
        ([{"x": X[0], "z": 0}], ValueError, r"targets must name .*, one of \['x', 'z'\]"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(source, error, message):
    with pytest.raises(error, match=message):
        ClientData.from_dataset("c", source)


@pytest.mark.filterwarnings("ignore")
def test_streams_and_several_splits_of_hugging_face_are_refused():
    _, data = hugging_face()
    with pytest.raises(TypeError, match=r"IterableDataset might have no end; .*data\.take"):
        ClientData.from_dataset("c", data.to_iterable_dataset())
    with pytest.raises(TypeError, match=r"one split with its samples, got splits \['train'\]"):
        ClientData.from_dataset("c", sys.modules["datasets"].DatasetDict(train=data))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("index", [0, 3])
def test_errors_of_a_data_set_of_ones_own_are_told_alike(index, error):
    told = f"sample {index} of Damaged raised {type(error).__name__}: .*scan"
    with pytest.raises(ValueError, match=f"client 'a', view 'test': .*{told}") as raised:
        ClientData.from_dataset("a", Mappings(), Damaged(index, error), inputs="image")
    assert type(raised.value) is ValueError
    assert raised.value.__cause__ is error


def test_errors_in_a_loader_or_in_columns_are_told_too():
    loader = DataLoader(Failing(), batch_size=2)
    with pytest.raises(ValueError, match=r"'a', .* batch 1 of DataLoader raised OSError: scan"):
        ClientData.from_dataset("a", loader)
    with pytest.raises(ValueError, match=r"'a', .* column 'label' of Unread raised OSError: scan"):
        ClientData.from_dataset("a", Unread())
    with pytest.raises(ValueError, match=r"'a', .* must have a length, but Lost raised OSError"):
        ClientData.from_dataset("a", Lost())


def test_a_sample_that_lacks_a_name_is_told():
    message = r"client 'a', .* sample 3 must have 'image' as the first one, got \['target'\]"
    with pytest.raises(ValueError, match=message):
        ClientData.from_dataset("a", Damaged(3), inputs="image")


def test_a_loader_of_mappings_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match="DataLoader have not; give the data set that it loads"):
        ClientData.from_dataset("a", DataLoader(Mappings()), inputs="image", targets="target")


@pytest.mark.filterwarnings("ignore")
def test_an_error_of_a_transform_of_hugging_face_is_told():
    _, data = hugging_face()

    def broken(batch):
        raise OSError("scan")

    with pytest.raises(ValueError, match=r"'a', .* sample 0 of Dataset raised OSError: scan"):
        ClientData.from_dataset("a", data.with_transform(broken))


@pytest.mark.parametrize("missing", [None, np.nan, pandas.NA])
def test_missing_labels_are_told_with_their_sample(missing):
    labels = pandas.Series(["no", "yes", "no", missing, "yes", "no"], dtype=object)
    message = rf"'a', .* targets must not be missing, .* {missing} in sample 3 \(from 0\)"
    for source in (FRAME.assign(label=labels), list(zip(X, labels, strict=True))):
        with pytest.raises(ValueError, match=message):
            ClientData.from_dataset("a", source, classes=["no", "yes"])


@pytest.mark.parametrize("kind", ["Float64", "Int64", "object"])
def test_missing_numbers_of_a_column_are_told_with_their_sample(kind):
    values = pandas.Series([0, 1, 2, 3, None, 5], dtype=kind)
    for column, what in (("b", "column 'b' of the inputs"), ("label", "targets")):
        with pytest.raises(ValueError, match=rf"{what} must .* 1 of 6 samples, .* in sample 4 \("):
            ClientData.from_dataset("a", FRAME.assign(**{column: values}))


def test_batches_by_name_are_read_from_the_data_set_that_is_loaded():
    loader = DataLoader(Mappings(), batch_size=2)
    for options in ({}, {"inputs": "image", "targets": "target"}):
        with pytest.raises(TypeError, match=r"give the data set that it loads, `loader\.dataset`"):
            ClientData.from_dataset("a", loader, **options)
        loaded = ClientData.from_dataset("a", loader.dataset, inputs="image")
        assert loaded.views["train"].targets.tolist() == Y.tolist()


def test_several_columns_of_targets_are_read_as_the_message_says():
    for targets in (["label", "b"], ("b",)):
        with pytest.raises(ValueError, match=r"must be the name of one column, one of") as told:
            ClientData.from_dataset("a", FRAME, targets=targets)
        remedy = re.findall(r"`([^`]+)`", str(told.value))[0]
        made = eval(remedy, {"ClientData": ClientData, "frame": FRAME, "name": "a"})
        assert made.target_columns == tuple(targets)
        assert len(made.columns) == 3 - len(targets)
    with pytest.raises(ValueError, match=r"one of \['a', 'b', 'label'\], got 3$"):
        ClientData.from_dataset("a", FRAME, targets=3)


@pytest.mark.parametrize("kind", [object, "category"])
def test_text_among_columns_becomes_columns_of_numbers_as_the_message_says(kind):
    table = FRAME.assign(town=[*"abbaab"], ward=[*"uvuvuv"]).astype({"town": kind})
    for read in (
        lambda frame: ClientData.from_dataset("a", frame),
        lambda frame: ClientData.from_arrays("a", (frame.drop(columns="label"), frame.label)),
        lambda frame: datasets.from_huggingface(frame, scaled=False),
        lambda frame: datasets.from_numpy(frame.drop(columns="label"), frame.label, scaled=False),
    ):
        with pytest.raises(
            (TypeError, ValueError), match=r"column 'town' .* whole `table`"
        ) as told:
            read(table)
        remedy = re.findall(r"`([^`]+)`", str(told.value))[0]
        assert read(eval(remedy, {"pandas": pandas, "table": table}))


def test_ragged_sequences_are_to_be_padded_or_cropped():
    with pytest.raises(TypeError, match=r"parts differ in shape; pad or crop them before$"):
        ClientData.from_arrays("a", ([[1.0, 2.0], [3.0]], [0, 1]))


def test_of_samples_of_more_parts_the_first_two_are_read_and_arrays_are_none():
    triples = [(x, y, index) for index, (x, y) in enumerate(zip(X, Y, strict=True))]
    mixed = [triples[0][:2], *triples[1:]]
    told = "only the first two parts of each (sample|batch) of (list|DataLoader) are read"
    for source in (triples, mixed, triples[:2], DataLoader(triples)):
        for read in (
            lambda one: ClientData.from_dataset("a", one).views["train"].targets,
            lambda one: datasets.from_torch(one, scaled=False).targets,
        ):
            with pytest.warns(DataWarning, match=told) as warned:
                assert read(source).tolist() == Y[: len(source)].tolist()
            assert [one.filename for one in warned] == [__file__]
    for arrays in ((X, Y), [X.tolist(), Y.tolist()], X.numpy()):
        with pytest.raises(
            TypeError, match=r"arrays of .*: ClientData\.from_arrays, or from_numpy"
        ):
            ClientData.from_dataset("a", arrays)


@pytest.mark.parametrize("path", ["folder/", b"file.csv", Path("file.csv")])
def test_paths_are_no_samples(path):
    with pytest.raises(TypeError, match=r"must be samples, got the path .*; read its files before"):
        ClientData.from_dataset("a", path)


def test_arrays_by_name_are_no_samples(tmp_path):
    np.savez(tmp_path / "a.npz", x=X.numpy(), y=Y.numpy())
    with np.load(tmp_path / "a.npz") as arrays:
        with pytest.raises(TypeError, match=r"splits \['x', 'y'\]; .*: ClientData\.from_arrays"):
            ClientData.from_dataset("a", arrays)
        with pytest.raises(TypeError, match=r"got a NpzFile with \['x', 'y'\]"):
            ClientData.from_arrays("a", arrays)


def test_samples_are_read_once():
    source = Augmented()
    ClientData.from_dataset("a", source)
    assert source.read == 2


@pytest.mark.parametrize("masked", [[1.0, np.ma.masked], [1, np.ma.masked]])
def test_masked_entries_are_told_and_nothing_else(masked):
    with pytest.raises(ValueError, match=r"sample 0 of list raised TypeError: it must not be mask"):
        ClientData.from_dataset("ann", [(masked, 0)])
    with pytest.raises(TypeError, match=r"inputs must not be masked, .* 1 of 2 samples"):
        ClientData.from_arrays("ann", ([masked, [0, 0]], [0, 1]))
