"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod

from torch import nn

from bcfl import Model
from bcfl.runtime import check_whole
from posteriors.curvature.likelihood import Likelihood


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
        raise ValueError(
            "mlp must be given the number of classes after its inputs and the widths of hidden "
            f"layers, such as mlp({inputs}, 32, 10), got mlp({inputs})"
        )
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


def linear(
    inputs: int, outputs: int, likelihood: Likelihood = "categorical", bias: bool = True
) -> Model:
    """Linear model: logistic regression of classes or labels, or linear regression of unit noise.

    Args:
        inputs: number of inputs.
        outputs: number of classes, of regression outputs, or of labels.
        likelihood: `categorical`, `gaussian` or `bernoulli`.
        bias: whether the outputs have a bias.

    Raises:
        ValueError: a size is below 1, or the likelihood is unknown.
    """
    check_whole("inputs", inputs, 1)
    check_whole("outputs", outputs, 1)
    return Model(
        name="linear",
        build=partial(_linear, inputs, outputs, bias),
        input_shape=(inputs,),
        num_outputs=outputs,
        config={"inputs": inputs, "outputs": outputs, "likelihood": likelihood, "bias": bias},
        likelihood=likelihood,
    )


def mlp_of(input_shape: Sequence[int], classes: int, hidden: Sequence[int] = (32,)) -> Model:
    """Multilayer perceptron with ReLU, for samples of any shape.

    The network of `experiments.models.mlp`, by named hyperparameters as in scenario files.

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


def amazon_mlp(classes: int = 2, inputs: int = 5000) -> Model:
    """Network for reviews as 5,000 terms: layers of 1,000, 500 and 100 units.

    Args:
        classes: number of classes.
        inputs: number of terms.

    Raises:
        ValueError: a size is below 1.

    References:
        BCFL paper, table 4, which has no ReLU between the layers of 100 units and of the classes.
    """
    check_whole("inputs", inputs, 1)
    check_whole("classes", classes, 1)
    return Model(
        name="amazon-mlp",
        build=partial(_amazon_mlp, inputs, classes),
        input_shape=(inputs,),
        num_outputs=classes,
        config={"classes": classes, "inputs": inputs},
    )


def faacl_mlp(classes: int = 10, hidden: Sequence[int] = (128,)) -> Model:
    """Network for images (1, 28, 28) with hidden layers of ReLU.

    Args:
        classes: number of classes.
        hidden: width of each hidden layer: 128 for MNIST, 512 for EMNIST, Fashion-MNIST, FEMNIST.

    Raises:
        ValueError: a size is not a whole number of at least 1.

    References:
        FAACL thesis, appendix B.3, which prints no widths and two hidden layers for FEMNIST; the
        released code has these widths, and one hidden layer.
    """
    model = mlp_of((1, 28, 28), classes, hidden)
    config = {"classes": classes, "hidden": list(hidden)}
    return replace(model, name="faacl-mlp", config=config)


def _amazon_mlp(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(inputs, 1000), nn.ReLU()),
        *(nn.Linear(1000, 500), nn.ReLU()),
        *(nn.Linear(500, 100), nn.Linear(100, classes)),
    )


def _mlp(*sizes: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _linear(inputs: int, outputs: int, bias: bool) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, outputs, bias=bias))
