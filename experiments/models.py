"""Architectures by name and hyperparameters.

Methods with posteriors perform best with networks without running statistics: BatchNorm statistics
have no posterior and are pooled by samples, so that the fused network normalises with statistics of
other networks. `mlp` has no normalisation; `fashion-cnn-gn` uses group normalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, Literal

from torch import nn

from bcfl import Model
from experiments.config.options import (
    check_keys,
    check_whole,
    chosen,
    named_arguments,
    typed_options,
)
from experiments.datasets import Dataset
from posteriors.curvature.likelihood import Likelihood

Norm = Literal["batch", "group", "none"]


def mlp(
    inputs: int | tuple[int, ...], *widths: int, input_shape: tuple[int, ...] | None = None
) -> Model:
    """Multilayer perceptron: flatten, then linear layers with ReLU in between.

    `mlp(64, 32, 10)` has 64 inputs, one hidden layer of 32 units, and 10 classes.

    Args:
        inputs: number of inputs, or the shape of a sample.
        *widths: width of each layer; the last is the number of classes.
        input_shape: shape of a sample of `inputs` elements; the module flattens it.

    Raises:
        ValueError: a size is below 1, there is no layer, or `input_shape` has another size.
    """
    shape = tuple(inputs) if isinstance(inputs, tuple) else (inputs,)
    for number in (*shape, *widths):
        check_whole("layer size", number, 1)
    if not widths:
        raise ValueError("widths must end with the number of classes, got none")
    size = prod(shape)
    if input_shape is not None:
        if prod(input_shape) != size:
            raise ValueError(f"input_shape must have {size} elements, got {tuple(input_shape)}")
        shape = tuple(input_shape)
    *hidden, classes = widths
    return Model(
        name="mlp",
        build=partial(_mlp, size, *widths),
        input_shape=shape,
        num_outputs=classes,
        config={"input_shape": list(shape), "hidden": hidden, "classes": classes},
    )


def fashion_cnn(classes: int = 10, norm: Norm = "batch") -> Model:
    """Convolutional network for Fashion-MNIST images (1, 28, 28).

    Two blocks of 5x5 convolution (16, then 32 channels), normalisation, ReLU and 2x2 max pooling,
    and a linear classifier on 7 * 7 * 32 features.

    Args:
        classes: number of classes.
        norm: `batch` (BatchNorm2d, as published), `group` (GroupNorm of 4 groups, no running
            statistics) or `none`.

    Raises:
        ValueError: the norm is unknown, or there is no class.

    References:
        Ma, Zhou, Long, Jiang, Zhang (2022), and the network table of the BCFL paper. The published
        tables print 16 channels for the second BatchNorm; the convolution before it has 32.
    """
    if norm not in ("batch", "group", "none"):
        raise ValueError(f"norm must be 'batch', 'group' or 'none', got {norm!r}")
    check_whole("classes", classes, 1)
    return Model(
        name="fashion-cnn",
        build=partial(_fashion_cnn, classes, norm),
        input_shape=(1, 28, 28),
        num_outputs=classes,
        config={"classes": classes, "norm": norm},
    )


def fashion_cnn_gn(classes: int = 10) -> Model:
    """See `fashion_cnn`; with group normalisation."""
    return fashion_cnn(classes, "group")


def linear(
    inputs: int, outputs: int, likelihood: Likelihood = "categorical", bias: bool = True
) -> Model:
    """Linear model: logistic regression, or linear regression with unit noise.

    Args:
        inputs: number of inputs.
        outputs: number of classes, or of regression outputs.
        likelihood: `categorical` or `gaussian`.
        bias: whether the outputs have a bias.

    Raises:
        ValueError: a size is below 1, or the likelihood is unknown.
    """
    check_whole("inputs", inputs, 1)
    check_whole("outputs", outputs, 1)
    if likelihood not in ("categorical", "gaussian"):
        raise ValueError(f"likelihood must be 'categorical' or 'gaussian', got {likelihood!r}")
    return Model(
        name="linear",
        build=partial(_linear, inputs, outputs, bias),
        input_shape=(inputs,),
        num_outputs=outputs,
        config={"inputs": inputs, "outputs": outputs, "likelihood": likelihood, "bias": bias},
        likelihood=likelihood,
    )


def mlp_of(input_shape: Sequence[int], classes: int, hidden: Sequence[int] = (32,)) -> Model:
    """Multilayer perceptron by named hyperparameters, as in configuration files; see `mlp`.

    Args:
        input_shape: shape of a sample.
        classes: number of classes.
        hidden: width of each hidden layer.

    Raises:
        ValueError: a size is not a whole number of at least 1.
    """
    for what, sizes in (("input_shape", input_shape), ("hidden", hidden)):
        if not isinstance(sizes, (list, tuple)):
            raise ValueError(f"{what} must be a list of whole numbers, got {sizes!r}")
    return mlp(tuple(input_shape), *hidden, classes)


MODELS: Mapping[str, Callable[..., Model]] = {
    "mlp": mlp_of,
    "fashion-cnn": fashion_cnn,
    "linear": linear,
    "fashion-cnn-gn": fashion_cnn_gn,
}


def build(name: str, config: Mapping[str, Any]) -> Model:
    """Build a model from its name and hyperparameters; the inverse of `m.name, m.config`.

    Args:
        name: one of `MODELS`.
        config: keyword arguments of the model.

    Raises:
        ValueError: the name or an option is unknown (the message suggests the nearest), a required
            option is missing, or a value is out of range.
    """
    builder = chosen("model", name, MODELS)
    check_keys(f"model {name!r}", builder, config)
    return builder(**typed_options(config, builder))


def build_for(dataset: Dataset, name: str, config: Mapping[str, Any]) -> Model:
    """Build a model with the input shape and number of classes of a data set.

    Args:
        dataset: data set; sets the arguments `input_shape`, `inputs`, `classes` and `outputs` of
            the model unless given in `config`.
        name: one of `MODELS`.
        config: other keyword arguments of the model.

    Raises:
        ValueError: as in `build`, or the model does not accept the data set's samples or has too
            few outputs.
    """
    defaults = {
        "input_shape": list(dataset.input_shape),
        "inputs": prod(dataset.input_shape),
        "classes": dataset.num_classes,
        "outputs": dataset.num_classes,
    }
    accepted = named_arguments(chosen("model", name, MODELS))
    model = build(name, {k: v for k, v in defaults.items() if k in accepted} | dict(config))
    if not _reads(model, dataset.input_shape) or model.num_outputs < dataset.num_classes:
        raise ValueError(
            f"model {name!r} takes samples of shape {model.input_shape} and has "
            f"{model.num_outputs} outputs, dataset {dataset.name!r} has samples of shape "
            f"{dataset.input_shape} and {dataset.num_classes} classes"
        )
    return model


def _reads(model: Model, shape: tuple[int, ...]) -> bool:
    flattens_first = isinstance(next(model.module().children(), None), nn.Flatten)
    return model.input_shape == shape or (flattens_first and prod(model.input_shape) == prod(shape))


def _mlp(*sizes: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _fashion_cnn(classes: int, norm: Norm) -> nn.Module:
    blocks = [*_convolution(1, 16, norm), *_convolution(16, 32, norm)]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(7 * 7 * 32, classes))


def _convolution(channels_in: int, channels_out: int, norm: Norm) -> list[nn.Module]:
    return [
        nn.Conv2d(channels_in, channels_out, kernel_size=5, padding=2),
        *_normalisation(channels_out, norm),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
    ]


def _normalisation(channels: int, norm: Norm) -> list[nn.Module]:
    if norm == "batch":
        return [nn.BatchNorm2d(channels)]
    return [nn.GroupNorm(4, channels)] if norm == "group" else []


def _linear(inputs: int, outputs: int, bias: bool) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, outputs, bias=bias))
