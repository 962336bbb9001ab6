"""Samples that are no finite numbers are found by column, sample and place."""

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import TensorDataset

from bcfl import ClientData, View

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
