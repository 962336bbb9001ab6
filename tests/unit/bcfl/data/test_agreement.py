"""Columns of data frames that clients, their views and predictions must share."""

import re

import numpy as np
import pandas
import pytest
import torch

from bcfl import ClientData, Federation, methods

RANDOM = np.random.default_rng(0)
X = pandas.DataFrame(RANDOM.normal(size=(40, 3)), columns=[*"abc"])
Y = pandas.DataFrame({"flu": (X.a > 0).astype(int), "cold": (X.b > 0).astype(int)})
TURNED = Y[["cold", "flu"]]
SITES = pandas.DataFrame(
    {"age": X.a, "town": [*"AAB", *"A" * 37], "ward": [*"uvu", *"v" * 37], "y": Y.flu}
)


def remedies_of(error):
    return re.findall(r"`([^`]+)`", str(error))


def made(remedy, frame):
    return eval(remedy, {"frame": frame, "pandas": pandas})


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_columns_of_targets_are_read_by_their_names(kind):
    parts = (X[:30], Y[:30].astype(kind)), (X[30:][[*"cba"]], TURNED[30:].astype(kind))
    data = ClientData.from_arrays("a", *parts)
    assert data.target_columns == ("flu", "cold")
    assert torch.equal(data.views["test"].targets, torch.tensor(Y[30:].astype(kind).to_numpy()))
    assert torch.equal(data.views["test"].inputs, torch.tensor(X[30:].to_numpy()))
    numbered = pandas.DataFrame(Y.to_numpy())
    data = ClientData.from_arrays("a", (X, Y), (X, numbered))
    assert torch.equal(data.views["test"].targets, data.views["train"].targets)


def test_other_columns_of_targets_are_told_with_what_mends_them():
    with pytest.raises(ValueError, match=r"'test': targets must have the columns of") as told:
        ClientData.from_arrays("a", (X, Y), (X, Y.assign(cough=1)))
    mended = made(remedies_of(told.value)[0], Y.assign(cough=1))
    assert ClientData.from_arrays("a", (X, Y), (X, mended)).num_samples["test"] == 40
    with pytest.raises(ValueError, match=r"targets .* got \['flu'\]") as told:
        ClientData.from_arrays("a", (X, Y), (X, Y[["flu"]]))
    mended = made(remedies_of(told.value)[0], Y[["flu"]])
    data = ClientData.from_arrays("a", (X, Y), (X, mended))
    assert data.views["test"].targets[:, 1].tolist() == [0] * 40


def test_clients_have_the_same_columns_of_targets_and_new_ones_are_read_by_them():
    first = ClientData.from_arrays("a", (X, Y))
    message = r"same columns of targets .*'a' has \['flu', 'cold'\], 'b' has \['cold', 'flu'\]"
    with pytest.raises(ValueError, match=message) as told:
        federation(first, ClientData.from_arrays("b", (X, TURNED)))
    mended = made(remedies_of(told.value)[0], TURNED)
    run = federation(first, ClientData.from_arrays("b", (X, mended))).run(1)
    assert run.target_columns == ("flu", "cold")
    wanted = run.predict_new(X, adaptation=(X, Y)).association
    turned = run.predict_new(X, adaptation=(X, TURNED)).association
    np.testing.assert_array_equal(turned, wanted)
    with pytest.raises(ValueError, match=r"adaptation: targets must have the columns"):
        run.predict_new(X, adaptation=(X, Y.rename(columns={"flu": "cough"})))


def test_categories_that_a_client_or_a_test_lacks_are_filled_in():
    table = pandas.get_dummies(SITES, columns=["town"])
    lacking = pandas.get_dummies(SITES[3:], columns=["town"])
    for read in (
        lambda name, *frames: ClientData.from_dataset(name, *frames, targets="y"),
        lambda name, *frames: ClientData.from_arrays(
            name, *((frame.drop(columns=["ward", "y"]), frame.y) for frame in frames)
        ),
    ):
        parts = [frame.assign(ward=1) for frame in (table, lacking)]
        with pytest.raises(ValueError, match=r"'test': .* must have the columns .*fill_v") as told:
            read("a", *parts)
        assert read("a", parts[0], made(remedies_of(told.value)[0], parts[1]))
        for order in (parts, parts[::-1]):
            clients = [read(name, frame) for name, frame in zip("ab", order, strict=True)]
            with pytest.raises(ValueError, match=r"columns in the same order.*fill_value") as told:
                federation(*clients)
            (remedy,) = remedies_of(told.value)
            mended = [made(remedy, frame) for frame in order]
            assert federation(*(read(*one) for one in zip("ab", mended, strict=True)))


def test_columns_that_predictions_do_not_read_are_to_be_left_out():
    frame = X.assign(y=Y.flu)
    clients = [ClientData.from_dataset(name, frame, targets="y") for name in "ab"]
    run = federation(*clients).run(1)
    for predict in (
        lambda x: run.predict("a", x),
        lambda x: run.predict_new(x, adaptation=(x, Y.flu)),
    ):
        with pytest.raises(
            ValueError, match=r"inputs must have the columns .*'y'\]; `frame.drop"
        ) as told:
            predict(frame)
        assert predict(made(remedies_of(told.value)[0], frame)).mean.shape == (40, 2)


def federation(*clients):
    width = len(clients[0].columns)
    return Federation(clients, lambda: torch.nn.Linear(width, 2), methods.fedavg())
