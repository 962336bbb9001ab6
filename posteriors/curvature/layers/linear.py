"""Squared per-sample gradients of fully connected layers."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn


def inputs_of_one(layer: nn.Linear, inputs: Tensor) -> Tensor:
    """What `squares` needs of the input of one network's layer.

    Args:
        layer: fully connected layer.
        inputs: (samples, ..., in_features).
    """
    del layer
    return inputs.square() if inputs.ndim == 2 else prepared(inputs.unsqueeze(0))


def prepared(inputs: Tensor) -> Tensor:
    """What `squares` needs of the inputs of a stack of networks.

    Args:
        inputs: (models, samples, ..., in_features).

    Returns:
        The squared inputs, (models, samples, in_features); or, where a sample passes the layer at
        several positions, the inputs themselves, (models, samples, positions, in_features).
    """
    return inputs.square() if inputs.ndim == 3 else inputs.flatten(2, -2)


def squares(prepared: Tensor, columns: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Sum of squared per-sample gradients of weight and bias.

    The square of an outer product is the outer product of squares; gradients at several positions
    are summed before they are squared.

    Args:
        prepared: Squared inputs of one network, (samples, in_features), or what `prepared` gives.
        columns: Gradients with respect to the output, each (samples, ..., out_features) of one
            network or (models, samples, ..., out_features); one tensor or several.

    Returns:
        Those of the weight, (models, out_features, in_features), and of the bias, (models,
        out_features); without models where `prepared` has none.
    """
    if prepared.ndim < 4:
        squared = _sum_of_squares(columns)
        return squared.mT @ prepared, squared.sum(-2)
    weight = bias = prepared.new_zeros(())
    for column in columns:
        gradient = column.reshape(*prepared.shape[:-1], -1)
        weight = weight + (gradient.mT @ prepared).square_().sum(1)
        bias = bias + gradient.sum(2).square_().sum(1)
    return weight, bias


def _sum_of_squares(columns: Iterable[Tensor]) -> Tensor:
    if isinstance(columns, Tensor):
        return columns.square().sum(0)
    rest = iter(columns)
    total = next(rest).square()
    for column in rest:
        total.addcmul_(column, column)
    return total
