"""Samples, networks and options that do not fit are refused by name, value and what is allowed."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from bcfl import (
    Aggregation,
    ClientData,
    Federation,
    Method,
    Model,
    Objective,
    PredictionRule,
    View,
    methods,
)
from bcfl.executors import ExecutorConfig, Privacy
from bcfl.policies import FedAvg
from bcfl.trackers import Exact, MultiHypothesis

X = np.random.default_rng(0).normal(size=(200, 3))
Y = np.arange(200) % 2
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClientData.from_arrays("a", (X, Y), (X[:, :2], Y)), r"'test': .*\(3,\) .*\(2,\)"),
        (
            lambda: ClientData.from_arrays((X, Y), "a"),
            r"client must be a name as text, got a tuple",
        ),
        (lambda: ClientData.from_arrays((X, Y), (X, Y)), r"ndarray of shape \(200, 3\), float64"),
        (
            lambda: ClientData.from_dataset((X, Y), "a"),
            r"client must be a name as text, got a tuple",
        ),
        (lambda: ClientData((X, Y), {}), r"client must be a name as text, got a tuple"),
        (lambda: ClientData("a", 3), r"views must be a mapping .*, got 3 \(int\)"),
        (lambda: ClientData.from_arrays("a", (X, Y), group=X), r"group must be .*\(200, 3\)"),
        (
            lambda: ClientData.from_dataset("a", (X, Y)),
            "pairs of .*; arrays .*: ClientData.from_arr",
        ),
        (
            lambda: ClientData.from_dataset(
                "a", TensorDataset(torch.tensor(X), torch.tensor(Y)), test=0.2
            ),
            r"'test': data must be a torch Dataset .*, got 0.2 \(float\)",
        ),
        (
            lambda: ClientData.from_dataset("a", FRAME, targets=["b", "y"]),
            r"targets must be the name of one column, one of .*, got \['b', 'y'\]",
        ),
        (lambda: ClientData.from_dataset("a", FRAME, inputs=3), "must have a column 3"),
        (lambda: ClientData.from_dataset("a", FRAME, inputs=[]), "inputs must name at least one"),
        (lambda: View(X, Y), r"inputs must be a torch.Tensor, got a ndarray .*; View.from_arrays"),
        (lambda: View(torch.tensor(X), Y), "targets must be a torch.Tensor, got a ndarray"),
    ],
)
def test_samples_are_refused_without_printing_them(make, message):
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        make()
    assert len(str(raised.value)) < 300


def test_samples_of_one_size_may_differ_in_shape():
    flat = ClientData.from_arrays("a", (X.reshape(200, 3, 1), Y), (X, Y))
    assert flat.num_samples == {"train": 200, "test": 200}


class LooksUp(nn.Module):
    def __init__(self, converts):
        super().__init__()
        self.converts, self.words, self.last = converts, nn.Embedding(5, 3), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.words(x.long() if self.converts else x).mean(1))


def federation(network, x=X[:8], y=Y[:8], **options):
    clients = [ClientData.from_arrays(name, (x, y), (x, y)) for name in "ab"]
    method = Method(policy=FedAvg(Objective(local_steps=1)))
    return Federation(clients, network, method, device="cpu", **options)


def test_networks_of_indices_are_told_to_convert_them():
    words = np.arange(32).reshape(8, 4) % 5
    message = r"floating-point numbers: .*`forward` should call `.long\(\)`"
    with pytest.raises(ValueError, match=message):
        federation(LooksUp(converts=False), words)
    federation(LooksUp(converts=True), words).run(rounds=1)


@pytest.mark.parametrize("odd", [0, 2])
def test_indices_beyond_the_vocabulary_are_told_with_its_size(odd):
    words = np.arange(32).reshape(8, 4) % 5
    words[odd, 1] = 7
    message = r"below `num_embeddings` of nn\.Embedding, 5; these inputs go from 0 to 7$"
    with pytest.raises(ValueError, match=message) as raised:
        federation(LooksUp(converts=True), words)
    assert ".long()" not in str(raised.value)


@pytest.mark.parametrize("outputs", [2, 3])
def test_classes_that_are_floating_point_are_told_how_to_become_integers(outputs):
    build = partial(nn.Linear, 3, outputs)
    own = Model(name="own", build=build, input_shape=(3,), num_outputs=outputs)
    for network in (own, build):
        with pytest.raises(ValueError, match=r"integers.*: `numpy\.asarray\(targets, int\)`"):
            federation(network, y=Y[:8].astype(float))


def test_other_errors_of_a_network_have_no_such_hint():
    with pytest.raises(ValueError, match="does not take samples of shape") as raised:
        federation(nn.Linear(4, 2))
    assert ".long()" not in str(raised.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_networks_in_double_precision_are_batched_without_a_warning(dtype):
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = federation(network, dtype=dtype, executor="batched").run(rounds=1)
    assert not run.records[0].ledger.failures


def test_classes_without_an_output_are_counted():
    message = "the network has 1 output, and classes need one output each (2 here)"
    with pytest.raises(ValueError, match=re.escape(message)):
        federation(nn.Linear(3, 1))


def test_classes_that_are_counted_from_one_are_told_of():
    with pytest.raises(ValueError, match=r"from 0: `numpy\.asarray\(targets\) - 1`, for all"):
        federation(nn.Linear(3, 2), y=Y[:8] + 1)


@pytest.mark.parametrize("others", [Y[:8], Y[:8] * 2])
def test_a_client_that_lacks_class_0_is_not_told_to_count_anew(others):
    clients = [
        ClientData.from_arrays(name, (X[:8], targets))
        for name, targets in (("a", Y[:8] + 1), ("b", others))
    ]
    words = r"\(3 here\), unless classes are counted from 1 here and from 0 elsewhere$"
    with pytest.raises(ValueError, match=words):
        Federation(clients, nn.Linear(3, 2), methods.build("fedavg"))


def test_labels_of_minus_1_and_1_have_their_remedy():
    with pytest.raises(ValueError, match=r"of -1 and 1: `numpy\.asarray\(targets\) > 0`$"):
        federation(nn.Linear(3, 2), y=2 * Y[:8] - 1)


@pytest.mark.parametrize("kind", [np.asarray, list, torch.tensor])
@pytest.mark.parametrize(
    "targets",
    [Y[:8].astype(float), Y[:8] + 1, 2 * Y[:8] - 1, np.eye(2)[Y[:8]].astype(int), Y[:8, None]],
)
def test_what_is_told_to_be_done_about_targets_makes_them_right(targets, kind):
    own = Model(name="own", build=partial(nn.Linear, 3, 2), input_shape=(3,), num_outputs=2)
    given = kind(targets)
    with pytest.raises(ValueError, match="targets must be") as raised:
        federation(own, y=given)
    told = [one for one in re.findall("`(.*?)`", str(raised.value)) if "numpy" in one]
    assert told
    made = [eval(remedy, {"numpy": np, "targets": given}) for remedy in told]
    federation(own, y=made[1] if targets.shape[1:] == (1,) else made[0])


class Standardising(nn.Linear):
    def forward(self, x):
        return super().forward((x - x.mean(dim=0)) / x.std(dim=0, correction=0))


def test_networks_that_need_several_samples_are_not_refused():
    run = federation(Standardising(3, 2)).run(rounds=1)
    assert run.records[0].ledger.trainings_run
    assert not run.records[0].ledger.failures


class Raising(nn.Linear):
    def forward(self, x):
        if self.training:
            raise RuntimeError("boom")
        return super().forward(x)


def test_networks_that_raise_when_they_are_tried_name_their_line():
    words = r"fails in training, .*: RuntimeError: boom, at test_arguments\.py:\d+ in forward"
    with pytest.raises(ValueError, match=words):
        federation(Raising(3, 2))


class Detached(nn.Linear):
    def forward(self, x):
        return super().forward(x).detach()


class Logarithm(nn.Linear):
    def forward(self, x):
        return (-super().forward(x).square() - 1).log()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Detached, r"gives outputs without a gradient .*; leave out `\.detach\(\)`.* forward$"),
        (Logarithm, r"gives NaN for all of 3 samples, .* infinite numbers$"),
    ],
)
def test_networks_that_can_never_train_are_refused(kind, words):
    with pytest.raises(ValueError, match=rf"^client 'a', view 'train': .* {words}"):
        federation(kind(3, 2))


def network():
    return nn.Linear(3, 2)


MODEL = {"name": "linear", "build": network, "input_shape": (3,), "num_outputs": 2}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("build", network(), "build must be a function .*, got a Linear; `lambda: module`"),
        ("build", "linear", "build must be a function .*, got a str"),
        ("input_shape", 3, "input_shape must be a tuple of whole numbers, such as .*, got 3"),
        ("input_shape", (2.5,), "input_shape must be .*, got"),
        ("num_outputs", "2", "num_outputs must be a whole number of at least 1, got '2'"),
        ("num_outputs", 0, "num_outputs must be a whole number of at least 1, got 0"),
        ("name", 3, "name must be text, got 3"),
        ("blocks", ("body",), "blocks must be a tuple of bcfl.BlockSpec, got"),
    ],
)
def test_entries_of_a_model_are_checked(name, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Model(**{**MODEL, name: value})


OPTIONS = {
    Objective: [
        *((name, "a") for name in ("local_steps", "local_epochs", "batch_size", "learning_rate")),
        *((name, "a") for name in ("momentum", "weight_decay", "prior_weight", "regularizers")),
        *((name, "a") for name in ("curvature_samples", "posterior", "phases", "upload")),
        ("momentum", 2),
        ("momentum", 1.0),
        ("learning_rate", None),
        ("batch_size", 2.5),
        ("local_steps", True),
        ("curvature_samples", 1.5),
        ("phases", ("body",)),
    ],
    Privacy: [(name, "a") for name in ("clip", "noise_multiplier", "loss_bound", "delta")],
    MultiHypothesis: [
        ("max_hypotheses", "a"),
        ("max_hypotheses", 1.5),
        ("max_per_parent", "a"),
        ("min_weight", "a"),
    ],
    Exact: [("limit", "a")],
    PredictionRule: [
        *((name, "a") for name in ("prior_precision", "temperature", "num_draws", "seed")),
        ("num_draws", 1.5),
    ],
    Aggregation: [("decay", "a"), ("server", "a"), ("robust", "a")],
    ExecutorConfig: [("cpus_per_node", "a"), ("gpus_per_node", "a"), ("memory", "a")],
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, name, value) for kind, some in OPTIONS.items() for name, value in some],
)
def test_options_of_another_type_are_named(kind, name, value):
    needed = {"max_hypotheses": 2} if kind is MultiHypothesis else {}
    with pytest.raises((TypeError, ValueError), match=f"^{name} must .*got ") as raised:
        kind(**{**needed, name: value})
    assert repr(value) in str(raised.value)


def test_options_may_be_numbers_of_numpy():
    assert Objective(learning_rate=np.float32(0.5), local_steps=np.int64(2)).local_steps == 2
    assert MultiHypothesis(np.int64(2)).candidates_per_parent == 2
