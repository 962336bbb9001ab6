"""Inputs that seem to be of another scale than others, or than those of training."""

import re
import warnings

import numpy as np
import pandas
import pytest
import torch
from PIL import Image

import bcfl
from bcfl import ClientData, Federation, methods
from bcfl.data import InputsWarning
from experiments import datasets

BYTES = np.random.default_rng(0).integers(0, 256, (12, 3, 4)).astype(np.uint8)
BYTES[:, 0, 0], BYTES[:, 0, 1] = 0, 255
SHARES = (BYTES / 255).astype(np.float32)
Y = np.arange(12) % 2
PICTURES = [Image.fromarray(one) for one in BYTES]


def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))


def federation(*views):
    """Clients with the inputs of training, and perhaps of a test."""
    clients = [
        ClientData.from_arrays(name, *((x, Y) for x in of_client))
        for name, of_client in zip("abcdef", views, strict=False)
    ]
    return Federation(clients, network, methods.fedavg())


def remedy_of(told, **names):
    remedies = re.findall(r"`([^`]+)`", str(told[0].message))
    return eval(remedies[0], {"numpy": np, "bcfl": bcfl, **names})


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (([SHARES], [BYTES]), r"'a' \(train\) from 0 to 1, but 'b' \(train\) from 0 to 255; give"),
        (([SHARES, BYTES],), r"'a' \(train\) from 0 to 1, but 'a' \(test\) from 0 to 255"),
        (([BYTES, SHARES],), r"'a' \(test\) from 0 to 1, but 'a' \(train\) from 0 to 255"),
        (([SHARES], *[[BYTES]] * 5), r"'d' \(train\) from 0 to 255, and 2 more views; give"),
    ],
)
def test_clients_and_views_of_other_scales_are_told(pairs, words):
    with pytest.warns(InputsWarning, match=words) as told:
        federation(*pairs)
    assert [one.filename for one in told] == [__file__]
    made = [
        [remedy_of(told, inputs=x) if x.dtype == np.uint8 else x for x in part] for part in pairs
    ]
    assert federation(*made).input_span == (0, 1)


@pytest.mark.parametrize(
    "pairs",
    [
        ([SHARES], [SHARES, SHARES]),
        ([BYTES], [BYTES, BYTES // 2]),
        ([BYTES], [BYTES // 128]),  # counts, or truth values
        ([SHARES], [-3 * SHARES]),
        ([SHARES], [SHARES * 16]),
        ([SHARES], [300.0 * SHARES - 9]),  # standardised
        ([BYTES], [BYTES * 0]),
    ],
)
def test_other_inputs_are_taken_without_a_warning(pairs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        federation(*pairs)


@pytest.fixture(scope="module")
def run():
    """Of a network that never saw more than 1."""
    whole = datasets.from_numpy(BYTES, Y)
    clients = [ClientData.from_arrays(name, (whole.inputs, whole.targets)) for name in "ab"]
    return Federation(clients, network, methods.fedavg()).run(1)


@pytest.mark.parametrize(
    "inputs",
    [
        BYTES[:, None],
        torch.tensor(BYTES[:, None]),
        BYTES[:, None].tolist(),
        PICTURES,
    ],
    ids=["array", "tensor", "list", "images"],
)
def test_bytes_in_place_of_shares_are_told(run, inputs):
    with pytest.warns(InputsWarning, match=r"^inputs are from 0 to 255, but those .* to 1") as told:
        run.predict("a", inputs)
    assert [one.filename for one in told] == [__file__]
    scaled = remedy_of(told, inputs=inputs)
    wanted = run.predict("a", SHARES[:, None]).mean
    np.testing.assert_allclose(run.predict("a", scaled).mean, wanted, rtol=1e-5)
    with pytest.warns(InputsWarning, match=r"^inputs of adaptation are from 0 to 255") as told:
        run.predict_new(scaled, adaptation=(inputs, Y))
    scaled = remedy_of(told, inputs=inputs)
    assert len(run.predict_new(scaled, adaptation=(scaled, Y)).mean) == 12


def test_shares_in_place_of_bytes_are_told_also_of_numbers():
    table = pandas.DataFrame(BYTES.reshape(12, 12)).add_prefix("pixel-")
    clients = [ClientData.from_arrays(name, (table, Y * 1.5)) for name in "ab"]
    linear = methods.fedavg(objective=bcfl.Objective(learning_rate=1e-6))
    run = Federation(clients, lambda: torch.nn.Linear(12, 1), linear).run(1)
    assert run.input_span == (0, 255)
    shares = table / 255
    with pytest.warns(InputsWarning, match=r"from 0 to 1, but those of .* to 255.*`inputs \* 255"):
        run.predict_values("a", shares)
    with pytest.warns(InputsWarning, match="^inputs of adaptation") as told:
        run.predict_new_values(table, adaptation=(shares, Y * 1.5))
    wanted = run.predict_values("a", table).mean
    scaled = remedy_of(told, inputs=shares)
    np.testing.assert_allclose(run.predict_values("a", scaled).mean, wanted, rtol=1e-5)
    for taken in (table // 128, table * 0, table[:0]):
        run.predict_values("a", taken)
