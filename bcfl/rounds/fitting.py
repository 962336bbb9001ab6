"""Whether a client's samples fit the model, in the form in which executors read them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData, View


def fitted(data: ClientData, model: Model, dtype: torch.dtype) -> ClientData:
    """The client with targets of the shape that the model's likelihood reads.

    Targets of a Gaussian or Bernoulli likelihood become (samples, outputs) floats, whatever their
    shape is and whether they are whole numbers.

    Args:
        data: samples of the client, by view.
        model: architecture that must read them.
        dtype: floating-point type that executors convert inputs to.

    Raises:
        ValueError: a shape, a label or the range of the inputs does not fit; the client is named.
    """
    views = {}
    for name, view in data.views.items():
        trouble = _input_trouble(view.inputs, model, dtype)
        if len(view) and not trouble:
            trouble = _target_trouble(view.targets, model, dtype)
        if trouble:
            raise ValueError(f"client {data.client!r}, view {name!r}: {trouble}")
        views[name] = view if model.likelihood == "categorical" else _with_rows(view, dtype)
    return replace(data, views=views)


def _with_rows(view: View, dtype: torch.dtype) -> View:
    targets = view.targets
    if not targets.is_floating_point():
        targets = targets.to(dtype)
    return View(view.inputs, targets.flatten(1) if targets.ndim > 1 else targets.unsqueeze(1))


def _input_trouble(inputs: Tensor, model: Model, dtype: torch.dtype) -> str:
    """Why the inputs of a view are invalid; empty if they are valid."""
    shape = tuple(inputs.shape[1:])
    if not model.reads(shape):
        return f"inputs of shape {shape} do not fit the model's {tuple(model.input_shape)}"
    return _range_trouble("inputs", inputs, dtype)


def _range_trouble(what: str, values: Tensor, dtype: torch.dtype) -> str:
    if not values.numel() or values.dtype.itemsize <= dtype.itemsize:
        return ""
    largest, limit = values.abs().max().item(), torch.finfo(dtype).max
    if largest <= limit:
        return ""
    return f"{what} must be finite in {dtype}, at most {limit:.3g}, got {largest:.3g}"


def _target_trouble(targets: Tensor, model: Model, dtype: torch.dtype) -> str:
    """Why the targets of a view are invalid; empty if they are valid."""
    outputs, shape = model.num_outputs, tuple(targets.shape)
    if model.likelihood == "gaussian":
        fits = targets[0].numel() == outputs and bool(torch.isfinite(targets).all())
        if fits:
            return _range_trouble("targets", targets, dtype) if targets.is_floating_point() else ""
        return f"targets must be {outputs} finite numbers per sample, got {shape}"
    if model.likelihood == "bernoulli":
        of_labels = targets[0].numel() == outputs and bool(((targets == 0) | (targets == 1)).all())
        what = f"targets must be {outputs} labels of 0 or 1 per sample, got {shape}"
        return "" if of_labels else f"{what} of {targets.min():g} to {targets.max():g}"
    if targets.ndim != 1:
        return f"targets must be one class per sample, got shape {shape}"
    return _class_trouble(targets, outputs)


def _class_trouble(targets: Tensor, outputs: int) -> str:
    lowest, highest = targets.min().item(), targets.max().item()
    if targets.is_floating_point() or lowest < 0 or highest >= outputs:
        return (
            f"targets must be integers from 0 to {outputs - 1}, got {lowest} to {highest} "
            f"({targets.dtype})"
        )
    return ""
