"""Architectures by name and numbers."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import prod
from typing import Literal

from torch import nn

from bcfl.model import Likelihood, Model

Norm = Literal["batch", "group", "none"]


def mlp(
    inputs: int | tuple[int, ...], *widths: int, input_shape: tuple[int, ...] | None = None
) -> Model:
    """A multilayer perceptron: flatten, then linear layers with ReLU between them.

    `mlp(64, 32, 10)` takes 64 numbers, has one hidden layer of 32, and 10 classes.

    Args:
        inputs: numbers per sample, or the shape of a sample.
        *widths: outputs of each layer; the last is the number of classes.
        input_shape: shape of a sample that holds `inputs` numbers; the module flattens any.

    Raises:
        ValueError: a size below 1, no layer, or an `input_shape` that holds other than `inputs`.
    """
    shape = (inputs,) if isinstance(inputs, int) else tuple(inputs)
    size = prod(shape)
    if not widths:
        raise ValueError("widths must end with the number of classes, got none")
    if min(*shape, *widths) < 1:
        raise ValueError(f"layer sizes must be at least 1, got {shape} and {widths}")
    if input_shape is not None:
        if prod(input_shape) != size:
            raise ValueError(f"input_shape must hold {size} numbers, got {tuple(input_shape)}")
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
    """The convolutional network for Fashion-MNIST images, (1, 28, 28).

    Two blocks of 5x5 convolution (16, then 32 channels), normalisation, ReLU and 2x2 max pooling,
    and a linear classifier on 7 * 7 * 32 numbers.

    Args:
        classes: number of classes.
        norm: `batch` (BatchNorm2d, as published), `group` (GroupNorm of 4 groups, no running
            statistics) or `none`.

    Raises:
        ValueError: another norm, or no class.

    References:
        Ma, Zhou, Long, Jiang, Zhang (2022), and the network table of the BCFL paper. The published
        tables print 16 channels for the second BatchNorm; the convolution before it has 32.
    """
    if norm not in ("batch", "group", "none"):
        raise ValueError(f"norm must be 'batch', 'group' or 'none', got {norm!r}")
    if classes < 1:
        raise ValueError(f"classes must be at least 1, got {classes}")
    return Model(
        name="fashion-cnn",
        build=partial(_fashion_cnn, classes, norm),
        input_shape=(1, 28, 28),
        num_outputs=classes,
        config={"classes": classes, "norm": norm},
    )


def linear(
    inputs: int, outputs: int, likelihood: Likelihood = "categorical", bias: bool = True
) -> Model:
    """A linear model: logistic regression, or linear regression with unit noise.

    Args:
        inputs: numbers per sample.
        outputs: number of classes, or of regression outputs.
        likelihood: `categorical` or `gaussian`.
        bias: whether each output has an offset.

    Raises:
        ValueError: a size below 1, or another likelihood.
    """
    if min(inputs, outputs) < 1:
        raise ValueError(f"inputs and outputs must be at least 1, got {inputs} and {outputs}")
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


def _mlp(*sizes: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    for wide, narrow in pairwise(sizes):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
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
