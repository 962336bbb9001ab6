"""What is checked of clients and model before a federation starts to work."""

from __future__ import annotations

import torch

from bcfl.clients import ClientData
from bcfl.model import Model
from bcfl.requests import Objective
from posteriors import DiagonalGaussian, Memory, local_posterior_fit


def check_model(
    model: Model, objective: Objective, shape: tuple[int, ...], memory: Memory = "replace"
) -> None:
    """Run a model on one sample of zeros, and its curvature where the objective asks for it.

    Args:
        model: the architecture.
        objective: what the clients will do.
        shape: of one sample.
        memory: whether clients are sent the prior that the model was born with, of one precision,
            or one that holds what earlier rounds found.

    Raises:
        ValueError: the model does not take such samples, gives another number of outputs, or has a
            layer whose curvature is not known; or its local posterior takes no such model or prior.
    """
    module, sample = model.module().eval(), torch.zeros(1, *shape)
    try:
        with torch.no_grad():
            outputs = module(sample)
    except RuntimeError as error:
        raise ValueError(f"{model!r} does not take samples of shape {shape}: {error}") from None
    if tuple(outputs.shape) != (1, model.num_outputs):
        raise ValueError(
            f"{model!r} must give outputs of shape (samples, {model.num_outputs}), got "
            f"{tuple(outputs.shape)} for one sample"
        )
    if objective.reports_precision:
        precision = torch.ones(model.layout.num_parameters)
        if memory != "replace":
            precision[0] = 2.0
        prior = DiagonalGaussian(torch.zeros_like(precision), precision)
        local_posterior_fit(objective.posterior, model.likelihood).check(module, sample, prior)


def check_fit(data: ClientData, model: Model) -> None:
    """Check that a client's samples fit the model.

    Raises:
        ValueError: a shape or a label does not fit.
    """
    for name, view in data.views.items():
        shape = tuple(view.inputs.shape[1:])
        trouble = (
            ""
            if model.reads(shape)
            else f"inputs of shape {shape} do not fit the model's {tuple(model.input_shape)}"
        )
        if len(view) and not trouble:
            trouble = _target_trouble(view.targets, model)
        if trouble:
            raise ValueError(f"client {data.client!r}, view {name!r}: {trouble}")


def _target_trouble(targets: torch.Tensor, model: Model) -> str:
    """What is wrong with the targets of a view, or nothing."""
    outputs, shape = model.num_outputs, tuple(targets.shape)
    if model.likelihood == "gaussian":
        fits = targets[0].numel() == outputs and bool(torch.isfinite(targets).all())
        return "" if fits else f"targets must be {outputs} finite numbers per sample, got {shape}"
    if targets.ndim != 1:
        return f"targets must be one class per sample, got shape {shape}"
    lowest, highest = targets.min().item(), targets.max().item()
    if targets.is_floating_point() or lowest < 0 or highest >= outputs:
        return (
            f"targets must be integers from 0 to {outputs - 1}, got {lowest} to {highest} "
            f"({targets.dtype})"
        )
    return ""
