"""Targets whose type may not say what is meant, and numbers far from the noise."""

import warnings

import numpy as np
import pytest
from torch import nn

from bcfl import ClientData, Federation, Model, methods
from bcfl.rounds import OutputsWarning, TargetsWarning

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(20, 3))
CLASSES = RANDOM.integers(2, size=20)
LABELS = RANDOM.integers(2, size=(20, 2))
NUMBERS = RANDOM.normal(size=20)


def federation(targets, outputs=2, likelihood=None):
    clients = [ClientData.from_arrays(name, (X, targets)) for name in "ab"]
    network = lambda: nn.Linear(3, outputs)  # noqa: E731
    if likelihood is not None:
        network = Model(
            name="own",
            build=network,
            input_shape=(3,),
            num_outputs=outputs,
            likelihood=likelihood,
        )
    return Federation(clients, network, methods.build("fedavg"))


@pytest.mark.parametrize(
    ("targets", "outputs", "words"),
    [
        (
            LABELS.astype("float32"),
            2,
            r"\(gaussian\), but all are 0 or 1; .*asarray\(targets, int\)",
        ),
        (CLASSES.astype(float), 1, r"\(gaussian\), but all are 0 or 1; for classes give one whole"),
        (np.eye(2)[CLASSES], 2, r"\(gaussian\), but .* one 1 in each row; .*argmax\(axis=1\)"),
        (np.eye(2, dtype=int)[CLASSES], 2, r"\(bernoulli\), but each row has one 1.*argmax"),
    ],
)
def test_zeros_and_ones_that_may_mean_something_else_are_told(targets, outputs, words):
    with pytest.warns(TargetsWarning, match=words) as told:
        found = federation(targets, outputs)
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        federation(targets, outputs, found.model.likelihood)


@pytest.mark.parametrize(
    ("targets", "outputs", "likelihood"),
    [
        (LABELS, 2, "bernoulli"),
        (LABELS.astype(bool), 2, "bernoulli"),
        (CLASSES, 2, "categorical"),
        (NUMBERS, 1, "gaussian"),
        (np.zeros(20), 1, "gaussian"),
    ],
)
def test_other_targets_are_taken_without_a_warning(targets, outputs, likelihood):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = federation(targets, outputs)
    assert f"Model(<lambda>: (3,) -> {outputs}, {likelihood}, " in repr(found)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (1000 * NUMBERS, r"root mean square of \d+, far above that of the noise.*standardise"),
        (NUMBERS + 2000, r"root mean square of 2e\+03, far above that of the noise"),
        (NUMBERS / 1000, r"standard deviation of 0.000\d+, far below that of the noise"),
    ],
)
@pytest.mark.parametrize("likelihood", [None, "gaussian"])
def test_numbers_far_from_the_noise_are_told(targets, words, likelihood):
    with pytest.warns(TargetsWarning, match=words) as told:
        federation(targets, 1, likelihood)
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize(
    ("last", "warned"),
    [
        (nn.Softmax(dim=1), True),
        (nn.LogSoftmax(dim=1), False),
        (nn.Sigmoid(), False),
        (nn.Identity(), False),
    ],
)
def test_classifiers_that_return_probabilities_are_warned_of(last, warned):
    clients = [ClientData.from_arrays(name, (X, CLASSES)) for name in "ab"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Federation(clients, lambda: nn.Sequential(nn.Linear(3, 2), last), methods.build("fedavg"))
    assert [one.category for one in said] == [OutputsWarning] * warned
    assert all(one.filename == __file__ and "logits" in str(one.message) for one in said)


@pytest.mark.parametrize(("last", "warned"), [(nn.Sigmoid(), True), (nn.Identity(), False)])
def test_networks_of_labels_that_return_probabilities_are_warned_of(last, warned):
    labels = np.random.default_rng(0).integers(0, 2, (len(X), 3))
    clients = [ClientData.from_arrays(name, (X, labels)) for name in "ab"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Federation(clients, lambda: nn.Sequential(nn.Linear(3, 3), last), methods.build("fedavg"))
    assert [one.category for one in said] == [OutputsWarning] * warned
    assert all("leave out the sigmoid" in str(one.message) for one in said)


@pytest.mark.parametrize("features", range(1, 9))
def test_logits_of_one_label_that_are_alike_are_no_probabilities(features):
    inputs = np.random.default_rng(0).normal(scale=1e-3, size=(20, features))
    clients = [ClientData.from_arrays(name, (inputs, CLASSES[:, None])) for name in "ab"]
    model = Model(
        name="own",
        build=lambda: nn.Linear(features, 1),
        input_shape=(features,),
        num_outputs=1,
        likelihood="bernoulli",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Federation(clients, model, methods.build("fedavg"))
