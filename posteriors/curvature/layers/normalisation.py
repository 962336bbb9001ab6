"""Squared per-sample gradients of the scale and offset of normalisation layers.

Batch normalisation has frozen running statistics. Layers differ in how they normalise; the squares
are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn import functional


def by_running_statistics(
    layer: nn.BatchNorm1d | nn.BatchNorm2d,
    inputs: Tensor,
    statistics: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Inputs normalised by running means and variances.

    Args:
        layer: The layer of one network.
        inputs: (samples, models x features, ...).
        statistics: Means and variances, both (models x features,); by default the layer's own.

    Raises:
        ValueError: If there are none.
    """
    mean, variance = statistics or (layer.running_mean, layer.running_var)
    if mean is None or variance is None:
        raise ValueError("layer must have running statistics")
    return functional.batch_norm(inputs, mean, variance, eps=layer.eps)


def by_groups(layer: nn.GroupNorm, inputs: Tensor, models: int = 1) -> Tensor:
    """Inputs normalised over each group of channels.

    Args:
        layer: group normalisation.
        inputs: (samples, models x channels, ...).
        models: networks in the stack.
    """
    return functional.group_norm(inputs, models * layer.num_groups, eps=layer.eps)


def by_features(layer: nn.LayerNorm, inputs: Tensor) -> Tensor:
    """Normalised inputs, as (samples, features, positions).

    Args:
        layer: layer normalisation.
        inputs: (samples, ..., *normalized_shape).
    """
    normalised = functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    return _features_first(normalised, layer.weight.numel())


def squares(normalised: Tensor, columns: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Sum of squared per-sample gradients of scale and offset; positions are summed first.

    Args:
        normalised: Normalised inputs, (samples, models x features, ...).
        columns: Gradients with respect to the output, each of the same shape.

    Returns:
        Those of the scale and of the offset, both (models x features,).
    """
    scale = offset = normalised.new_zeros(())
    by_position = (*normalised.shape[:2], -1)
    for column in columns:
        products = (column * normalised).reshape(by_position).sum(2)
        scale = scale + products.square_().sum(0)
        offset = offset + column.reshape(by_position).sum(2).square_().sum(0)
    return scale, offset


def squares_by_features(normalised: Tensor, columns: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """The squared gradients of scale and offset for layer normalisation; see `squares`.

    Args:
        normalised: (samples, features, positions), see `by_features`.
        columns: gradients at the outputs, each (samples, ..., *normalized_shape).
    """
    features = normalised.shape[1]
    return squares(normalised, (_features_first(column, features) for column in columns))


def _features_first(values: Tensor, features: int) -> Tensor:
    return values.reshape(len(values), -1, features).transpose(1, 2)
