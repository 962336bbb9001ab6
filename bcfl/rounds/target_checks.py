"""Whether targets fit a model, and what to do about those that do not."""

from __future__ import annotations

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.runtime.suggestions import counted


def target_trouble(targets: Tensor, model: Model, dtype: torch.dtype, lowest: float) -> str:
    """Why the targets of a view do not fit a model, and what would mend them; empty if they fit.

    Args:
        targets: (samples, ...), at least one sample.
        model: whose likelihood and outputs they must fit.
        dtype: floating-point type that executors convert targets to.
        lowest: target of any client; where it is 1, messages say that classes are counted from 0.
    """
    outputs, shape = model.num_outputs, tuple(targets.shape)
    if model.likelihood == "gaussian":
        if targets[0].numel() == outputs:
            return range_trouble("targets", targets, dtype) if targets.is_floating_point() else ""
        return (
            f"targets must be {counted(outputs, 'number')} per sample, as many as the network's "
            f"outputs, got shape {shape} ({targets.dtype}){_of_classes(targets)}"
        )
    if model.likelihood == "bernoulli":
        return _label_trouble(targets, outputs)
    if targets.ndim != 1:
        return (
            f"targets must be one class per sample, got shape {shape}; the classes of one-hot rows "
            "are `numpy.asarray(targets).argmax(axis=1)`, those of a column "
            "`numpy.asarray(targets).ravel()`, and several labels per sample need a model with "
            "likelihood 'bernoulli'"
        )
    return _class_trouble(targets, outputs, lowest)


def _label_trouble(targets: Tensor, outputs: int) -> str:
    """Why targets are not one label of 0 or 1 for each output; empty if they are."""
    binary = bool(((targets == 0) | (targets == 1)).all())
    if binary and targets[0].numel() == outputs:
        return ""
    got = f"{tuple(targets.shape)} of {targets.min():g} to {targets.max():g}"
    return f"targets must be {counted(outputs, 'label')} of 0 or 1 per sample, got {got}" + (
        _other_width(targets, outputs) if binary else _of_numbers(targets)
    )


def _other_width(labels: Tensor, outputs: int) -> str:
    """What to do about labels that are not as many as the outputs."""
    if labels.ndim == 1:
        return "; classes, one whole number per sample, need a model with likelihood 'categorical'"
    width = labels[0].numel()
    return (
        f"; the network has {counted(outputs, 'output')}, and labels need one output each "
        f"({width} here)"
    )


def _too_few_outputs(targets: Tensor, outputs: int, lowest: float = 0.0) -> str:
    """That classes need more outputs than the network has; empty where that is not the trouble."""
    needed = int(targets.max()) + 1
    if targets.is_floating_point() or int(targets.min()) < 0 or needed <= outputs:
        return ""
    hint = ""
    if int(targets.min()) > 0 and needed == outputs + 1:
        hint = (
            "; classes are counted from 0: `numpy.asarray(targets) - 1`, for all clients"
            if lowest == 1
            else ", unless classes are counted from 1 here and from 0 elsewhere"
        )
    return (
        f"; the network has {counted(outputs, 'output')}, and classes need one output each "
        f"({needed} here){hint}"
    )


def _of_numbers(targets: Tensor) -> str:
    """How whole numbers become numbers to predict; empty for other targets."""
    whole = not targets.is_floating_point()
    return "; numbers to predict (regression): `numpy.asarray(targets, float)`" * whole


def _of_classes(targets: Tensor) -> str:
    """What to do where classes were given to a model of numbers."""
    if targets.is_floating_point():
        return f"; classes must be integers{_of_integers(targets)}"
    return "; classes need a model with likelihood 'categorical'"


def _of_integers(targets: Tensor) -> str:
    """How whole numbers that are floating point become integers; empty for other targets."""
    whole = targets.is_floating_point() and bool((targets == targets.round()).all())
    return ": `numpy.asarray(targets, int)` makes them integers" * whole


def _of_signs(targets: Tensor) -> str:
    """How -1 and 1 become two classes; empty for other targets."""
    return "; of -1 and 1: `numpy.asarray(targets) > 0`" * (
        bool((targets.abs() == 1).all()) and int(targets.min()) == -1
    )


def _class_trouble(targets: Tensor, outputs: int, lowest: float) -> str:
    least, highest = targets.min().item(), targets.max().item()
    if outputs == 1 and least == 0 < highest and not targets.is_floating_point():
        return (
            f"targets are classes from 0 to {highest} ({targets.dtype})"
            f"{_too_few_outputs(targets, outputs)}, so that a binary classifier has two"
            f"{_of_numbers(targets)}"
        )
    if targets.is_floating_point() or least < 0 or highest >= outputs:
        return (
            f"targets must be integers from 0 to {outputs - 1}, got {least} to {highest} "
            f"({targets.dtype}){_of_integers(targets)}{_of_signs(targets)}"
            f"{_too_few_outputs(targets, outputs, lowest)}{_of_numbers(targets) * (outputs == 1)}"
        )
    return ""


def range_trouble(what: str, values: Tensor, dtype: torch.dtype) -> str:
    """Why values are not finite in a floating-point type; empty if they are.

    Args:
        what: how the message calls them.
        values: of any shape and type.
        dtype: that they are converted to.
    """
    if not values.numel() or values.dtype.itemsize <= dtype.itemsize:
        return ""
    largest, limit = values.abs().max().item(), torch.finfo(dtype).max
    if largest <= limit:
        return ""
    return f"{what} must be finite in {dtype}, at most {limit:.3g}, got {largest:.3g}"
