"""Samples that are no finite numbers are found by column, sample and place."""

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import TensorDataset

from bcfl import ClientData, Federation, View, methods

X = np.arange(80.0).reshape(40, 2)
Y = np.arange(40) % 2
FRAME = pandas.DataFrame({"age": X[:, 0], "dose": X[:, 1], "y": Y})


def odd(values, *places, value=np.nan):
    changed = np.array(values, dtype=float)
    for place in places:
        changed[place] = value
    return changed


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ClientData.from_arrays("a", (x, Y)),
        lambda x: ClientData.from_dataset("a", TensorDataset(torch.tensor(x), torch.tensor(Y))),
        lambda x: View(torch.tensor(x), torch.tensor(Y)),
    ],
    ids=["arrays", "data set", "view"],
)
def test_arrays_name_sample_and_place(make):
    message = r"inputs must be finite, got NaN or inf in 2 of 40 samples, the first of them nan in "
    with pytest.raises(ValueError, match=message + r"sample 5 \(from 0\) at \[1\]; fill in"):
        make(odd(X, (5, 1), (7, 0), (7, 1)))


def test_targets_name_the_sample():
    with pytest.raises(ValueError, match=r"targets must .* them -inf in sample 39 \(from 0\);"):
        ClientData.from_arrays("a", (X, odd(Y, 39, value=-np.inf)))


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: ClientData.from_dataset("a", frame),
        lambda frame: ClientData.from_arrays("a", (frame.drop(columns="y"), frame["y"])),
    ],
    ids=["data set", "arrays"],
)
def test_frames_name_the_column(make):
    with pytest.raises(
        ValueError, match=r"column 'dose' of the inputs .* in 1 of .* nan in sam.* 7"
    ):
        make(FRAME.assign(dose=odd(X[:, 1], 7)))
    text = FRAME.assign(sex=["m", "f"] * 20)
    for kind in (object, "category"):
        with pytest.raises(
            TypeError, match=r"column 'sex' of the inputs must be real numbers, got "
        ):
            make(text.astype({"sex": kind}))
    assert make(FRAME.assign(old=X[:, 0] > 9)).views["train"].inputs.shape == (40, 3)


def test_columns_of_arrays_do_not_join_others():
    with pytest.raises(ValueError, match=r"of arrays or several of numbers, got .*'dose': \(2,\)"):
        ClientData.from_dataset("a", FRAME.assign(dose=[[1, 2]] * 40))


TURNED = FRAME[["dose", "y", "age"]]


@pytest.mark.parametrize(
    "make",
    [
        lambda train, test: ClientData.from_dataset("a", train, test, targets="y"),
        lambda train, test: ClientData.from_arrays(
            "a", (train.drop(columns="y"), Y), (test.drop(columns="y"), Y)
        ),
    ],
    ids=["data set", "arrays"],
)
def test_columns_are_read_by_their_names(make):
    data = make(FRAME, TURNED)
    assert data.columns == ("age", "dose")
    assert torch.equal(data.views["test"].inputs, data.views["train"].inputs)
    for other in (FRAME.assign(more=1.0), FRAME.rename(columns={"age": "years"})):
        message = r"client 'a', view 'test': .* must have the columns of .*\['age', 'dose'\], got"
        with pytest.raises(ValueError, match=message):
            make(FRAME, other)


def test_numbered_columns_fit_any_names_in_their_order_and_their_own_in_any():
    numbered = pandas.DataFrame(X)
    data = ClientData.from_arrays("a", (FRAME[["dose", "age"]], Y), (numbered, Y))
    assert torch.equal(data.views["test"].inputs, torch.tensor(X))
    for train, test in ((numbered, numbered[[1, 0]]), (numbered[[1, 0]], numbered)):
        data = ClientData.from_arrays("a", (train, Y), (test, Y))
        assert torch.equal(data.views["test"].inputs, data.views["train"].inputs)


def test_columns_of_one_name_are_taken_in_their_order():
    repeated = pandas.DataFrame(X, columns=["a", "a"])
    data = ClientData.from_arrays("a", (repeated, Y), (repeated, Y))
    assert data.columns == ()
    assert torch.equal(data.views["test"].inputs, torch.tensor(X))


def test_clients_have_the_same_columns_and_predictions_read_frames_by_them():
    clients = [ClientData.from_dataset(name, FRAME, targets="y") for name in "ab"]
    turned = ClientData.from_dataset("c", TURNED, targets="y")
    message = r"'a' has \['age', 'dose'\], 'c' has \['dose', 'age'\]; .*inputs=\['age', 'dose'\]"
    with pytest.raises(ValueError, match=message):
        Federation([*clients, turned], network, methods.fedavg())
    chosen = ClientData.from_dataset("c", TURNED, inputs=["age", "dose"], targets="y")
    run = Federation([*clients, chosen], network, methods.fedavg()).run(1)
    wanted = run.predict("a", X).mean
    for frame in (FRAME[["age", "dose"]], FRAME[["dose", "age"]]):
        assert np.array_equal(run.predict("a", frame).mean, wanted)
        new = run.predict_new(frame, adaptation=(frame[:3], Y[:3])).mean
        assert np.array_equal(new, run.predict_new(X, adaptation=(X[:3], Y[:3])).mean)
    with pytest.raises(ValueError, match=r"inputs must have the columns of .* got \['age'\]"):
        run.predict("a", FRAME[["age"]])


def network():
    return torch.nn.Linear(2, 2)
