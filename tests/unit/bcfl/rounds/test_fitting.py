"""Samples of clients in the form that executors read."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import ClientData
from bcfl.rounds.fitting import fitted

X = np.ones((3, 3))


def with_targets(model, targets, inputs=X, dtype=torch.float32):
    return fitted(ClientData.from_arrays("a", (inputs, targets)), model, dtype).views["train"]


@pytest.fixture
def regression(linear):
    return type(linear)(
        name="regression",
        build=lambda: torch.nn.Linear(3, 2),
        input_shape=(3,),
        num_outputs=2,
        likelihood="gaussian",
    )


def test_targets_of_regression_become_rows_of_numbers(regression):
    found = with_targets(regression, np.arange(6).reshape(3, 1, 2)).targets
    assert found.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert found.dtype == torch.float32


def test_labels_become_rows_of_zeros_and_ones(regression):
    labels = replace(regression, likelihood="bernoulli")
    found = with_targets(labels, np.array([[True, False]] * 3)).targets
    assert found.tolist() == [[1.0, 0.0]] * 3
    assert found.dtype == torch.float32
    for wrong in (np.full((3, 2), 2), np.ones((3, 3), dtype=int), np.full((3, 2), 0.5)):
        with pytest.raises(ValueError, match="targets must be 2 labels of 0 or 1 per sample, got"):
            with_targets(labels, wrong)


@pytest.mark.parametrize(
    ("targets", "remedy"),
    [
        (np.ones((3, 3), int), r"; the network has 2 outputs, .* one output each \(3 here\)$"),
        (np.array([0, 1, 1]), r"; classes, .* need a model with likelihood 'categorical'$"),
        (
            np.full((3, 2), 7),
            r"; numbers to predict \(regression\): `numpy\.asarray\(targets, float\)`$",
        ),
    ],
)
def test_labels_that_do_not_fit_have_the_remedy_for_their_kind(regression, targets, remedy):
    with pytest.raises(ValueError, match=remedy):
        with_targets(replace(regression, likelihood="bernoulli"), targets)


@pytest.mark.parametrize("classes", [["no"], ["no", "yes", "maybe"]])
def test_a_list_of_classes_has_one_for_each_output(linear, classes):
    data = ClientData.from_arrays("a", (X, ["no"] * 3), classes=classes)
    words = f"client 'a': classes must be as many as .* outputs, 2, .* got {len(classes)}: .'no'"
    with pytest.raises(ValueError, match=words):
        fitted(data, linear, torch.float32)


def test_binary_classifiers_with_one_output_are_told_to_have_two(linear):
    one = replace(linear, build=lambda: torch.nn.Linear(3, 1), num_outputs=1)
    words = r"classes from 0 to 1 .* has 1 output, .* \(2 here\), so that a binary .* has two; num"
    with pytest.raises(ValueError, match=words):
        with_targets(one, [0, 1, 1])


def test_whole_numbers_to_be_predicted_are_told_to_become_floats(linear, regression):
    one = replace(linear, build=lambda: torch.nn.Linear(3, 1), num_outputs=1)
    labels, words = replace(regression, likelihood="bernoulli"), r"\(regression\): `numpy\.asarray"
    for model, targets in ((one, [1, 78, 3]), (labels, np.full((3, 2), 7))):
        with pytest.raises(ValueError, match=words):
            with_targets(model, targets)


def test_classes_given_to_a_model_of_numbers_are_told_of_its_likelihood(regression):
    with pytest.raises(ValueError, match=r"classes need a model with likelihood 'categorical'$"):
        with_targets(regression, [0, 1, 0])


def test_classes_stay_as_they_are(linear):
    assert with_targets(linear, [0, 1, 0]).targets.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("targets", "inputs", "words"),
    [
        (np.full((3, 2), 1e300), X, "'train': targets must be finite in torch.float32"),
        (np.ones((3, 2)), X * -1e300, "'train': inputs must be finite in torch.float32"),
        (np.ones((3, 3)), X, "'train': targets must be 2 numbers per sample"),
        (np.full((3, 2), np.nan), X, "targets must be finite, got NaN or inf"),
        (np.ones((3, 2)), X[:, :2], "inputs of shape"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_client(regression, targets, inputs, words):
    with pytest.raises(ValueError, match=f"client 'a', view .*{words}"):
        with_targets(regression, targets, inputs)


def test_large_numbers_are_taken_in_float64(regression):
    found = with_targets(regression, np.full((3, 2), 1e300), dtype=torch.float64)
    assert float(found.targets[0, 0]) == 1e300
