"""Whether model, objective and clients' samples fit one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from reprlib import repr as shortened

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.architecture.probing import (
    Network,
    as_model,
    check_training,
    likelihood_of,
    outputs_of,
    telling,
)
from bcfl.data.clients import ClientData
from bcfl.data.names import TRAIN
from bcfl.data.view import View
from bcfl.protocol.objective import Objective
from bcfl.rounds.target_checks import range_trouble, target_trouble
from posteriors import (
    DiagonalGaussian,
    Memory,
    UnsupportedFitError,
    UnsupportedLayerError,
    local_posterior_fit,
)
from posteriors.curvature.likelihood import Likelihood
from posteriors.networks.functional import own_copy

CHECKED_SAMPLES = 3
"""Samples on which a model is checked."""
KINDS: Mapping[Likelihood, str] = {
    "gaussian": "numbers",
    "categorical": "classes",
    "bernoulli": "rows of labels",
}
"""What a likelihood predicts."""


def largest(clients: Sequence[ClientData]) -> ClientData:
    """The client with most training samples."""
    return max(clients, key=lambda data: len(data.views[TRAIN]))


def training_of(data: ClientData) -> str:
    """How messages call the training samples of a client."""
    return f"client {data.client!r}, view {TRAIN!r}"


def model_of(network: Network, clients: Sequence[ClientData]) -> Model:
    """The model of a network, tried on a sample of the client that has most.

    Args:
        network: a model, a module, or what builds modules.
        clients: whose samples it must read.

    Raises:
        TypeError: the network is none of these.
        ValueError: it does not take such samples, or clients have inputs of different shapes or
            targets of different kinds.
    """
    most = largest(clients)
    samples = most.views[TRAIN]
    shape = tuple(samples.inputs.shape[1:])
    for data in clients if not isinstance(network, Model) else ():
        other = tuple(data.views[TRAIN].inputs.shape[1:])
        if other != shape:
            raise ValueError(
                f"inputs of all clients must have one shape, got {shape} of {most.client!r} and "
                f"{other} of {data.client!r}"
            )
    if isinstance(network, Model):
        return network
    targets = [data.views[TRAIN].targets for data in clients]
    numbers = [each for each in targets if each.is_floating_point()]
    model = as_model(
        network,
        samples.inputs,
        numbers[0] if numbers else samples.targets,
        whose=training_of(most),
    )
    _check_kinds(model, clients)
    return model


def _check_kinds(model: Model, clients: Sequence[ClientData]) -> None:
    """Check that targets of all clients are of one kind; whole numbers are numbers, too."""
    targets = {data.client: data.views[TRAIN].targets for data in clients}
    first: dict[Likelihood, str] = {}
    for client, each in targets.items():
        first.setdefault(likelihood_of(each), client)
    fits = (each[0].numel() == model.num_outputs for each in targets.values())
    if len(first) > 1 and not (model.likelihood == "gaussian" and all(fits)):
        got = " and ".join(
            f"{KINDS[kind]} of {client!r} ({targets[client].dtype}, shape "
            f"{tuple(targets[client].shape)})"
            for kind, client in first.items()
        )
        raise ValueError(
            f"targets of all clients must be of one kind, got {got}; classes are whole numbers, "
            "labels rows of 0 and 1, numbers to predict floating point, at every client"
        )


def check_model(
    model: Model, objective: Objective, data: ClientData, memory: Memory = "replace"
) -> None:
    """Run a model on samples of a client, and check its curvature if the objective asks for it.

    Args:
        model: the architecture.
        objective: of local training.
        data: whose first training samples are tried.
        memory: whether the prior that clients are sent has one precision (`replace`), or the
            precisions of earlier rounds.

    Raises:
        ValueError: the model does not take such samples, cannot be trained on them, gives another
            number of outputs, or has a layer without a curvature rule; or the local posterior does
            not support it or the prior.
    """
    module, whose = model.module().eval(), training_of(data)
    samples = data.views[TRAIN].inputs[:CHECKED_SAMPLES]
    inputs = own_copy(samples, next(module.parameters(), None))
    outputs = outputs_of(module, inputs, repr(model), whose)
    if tuple(outputs.shape) != (1, model.num_outputs):
        raise ValueError(
            f"{model!r} must give outputs of shape (samples, {model.num_outputs}), got "
            f"{tuple(outputs.shape)} for one sample of {whose}"
        )
    if objective.reports_precision:
        precision = torch.ones(model.layout.num_parameters)
        if memory != "replace":
            precision[0] = 2.0
        prior = DiagonalGaussian(torch.zeros_like(precision), precision)
        fit = local_posterior_fit(objective.posterior, model.likelihood)
        unsupported = (UnsupportedFitError, UnsupportedLayerError)
        what = f"{model!r} fails where its curvature is computed, on {len(inputs)} samples"
        try:
            with telling(what, module, inputs, whose, unsupported):
                fit.check(module, inputs, prior)
        except unsupported as error:
            raise type(error)(f"{error}. {_other_curvature(objective)}") from error
    check_training(module, samples, model.num_outputs, repr(model), whose)


def _other_curvature(objective: Objective) -> str:
    """What to do about a network that a local posterior does not support."""
    last = "; most: posterior='laplace-last-layer' (slower; the curvature of the last layer alone)"
    return (
        "Options of methods.build that suit any network: curvature='samples' or 'uniform' (fast; "
        f"one number for all parameters){last * (objective.posterior != 'laplace-last-layer')}; "
        "methods such as ifca, wecfl and fedavg need no curvature"
    )


def lowest_class(clients: Sequence[ClientData]) -> float:
    """The lowest target of any view of any client; whether classes are counted from 0 or 1."""
    targets = [view.targets for data in clients for view in data.views.values()]
    return min((each.min().item() for each in targets if each.numel()), default=0.0)


def fitted(data: ClientData, model: Model, dtype: torch.dtype, lowest: float = 0.0) -> ClientData:
    """The client with targets of the shape that the model's likelihood reads.

    Targets of a Gaussian or Bernoulli likelihood become (samples, outputs) floats, whatever their
    shape is and whether they are whole numbers.

    Args:
        data: samples of the client, by view.
        model: architecture that must read them.
        dtype: floating-point type that executors convert inputs to.
        lowest: target of any client; where it is 1, messages say that classes are counted from 0.

    Raises:
        ValueError: a shape, a label, the number of its classes or the range of the inputs does not
            fit; the client is named.
    """
    if data.classes and model.likelihood == "categorical":
        _check_count(data, model.num_outputs)
    views = {}
    for name, view in data.views.items():
        trouble = _input_trouble(view.inputs, model, dtype)
        if len(view) and not trouble:
            trouble = target_trouble(view.targets, model, dtype, lowest)
        if trouble:
            raise ValueError(f"client {data.client!r}, view {name!r}: {trouble}")
        views[name] = view if model.likelihood == "categorical" else _with_rows(view, dtype)
    return replace(data, views=views)


def _check_count(data: ClientData, outputs: int) -> None:
    """Check that the network has one output for each class of a client's list."""
    if len(data.classes) != outputs:
        raise ValueError(
            f"client {data.client!r}: classes must be as many as the network's outputs, {outputs}, "
            f"one for each, got {len(data.classes)}: {shortened(list(data.classes))}; "
            "`dataclasses.replace(client, classes=())` leaves out names that a data set has for "
            "other classes"
        )


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
    return range_trouble("inputs", inputs, dtype)
