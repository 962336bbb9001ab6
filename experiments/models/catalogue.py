"""Registry of architectures by name, and their fit to a data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import nn

from bcfl import Model
from bcfl.architecture import as_model
from bcfl.methods import imported, keywords, made_by, misfit, reference_of, registered
from bcfl.runtime import check_name
from experiments.config.components import SHAPES
from experiments.config.options import check_keys, chosen, named_arguments, typed_options
from experiments.datasets import Dataset
from experiments.models.convolutions import (
    cifar_cnn,
    digits_five_cnn,
    faacl_cnn,
    fashion_cnn,
    fashion_cnn_gn,
    ocfl_cnn,
    path_cnn,
    tissue_cnn,
)
from experiments.models.perceptrons import amazon_mlp, faacl_mlp, linear, mlp_of
from experiments.models.recurrent import bilstm
from experiments.models.residual import resnet34

MODELS: Mapping[str, Callable[..., Model]] = {
    "mlp": mlp_of,
    "fashion-cnn": fashion_cnn,
    "linear": linear,
    "fashion-cnn-gn": fashion_cnn_gn,
    "tissue-cnn": tissue_cnn,
    "cifar-cnn": cifar_cnn,
    "path-cnn": path_cnn,
    "digits-five-cnn": digits_five_cnn,
    "amazon-mlp": amazon_mlp,
    "ocfl-cnn": ocfl_cnn,
    "resnet34": resnet34,
    "faacl-mlp": faacl_mlp,
    "faacl-cnn": faacl_cnn,
    "bilstm": bilstm,
}
EMBEDDING = ("bilstm",)
"""Networks that read samples of one axis as the numbers of words."""
OWN = "a bcfl.Model, a torch.nn.Module, or a function or class that makes one"


def build(name: str, config: Mapping[str, Any]) -> Model:
    """Build a model from its name and hyperparameters; the inverse of `m.name, m.config`.

    Args:
        name: one of `MODELS`.
        config: keyword arguments of the model.

    Raises:
        ValueError: the name or an option is unknown (the message suggests the nearest), a required
            option is missing, or a value is out of range.
    """
    check_name("model", name)
    builder = chosen("model", name, MODELS)
    check_keys(f"model {name!r}", builder, config)
    return builder(**typed_options(config, builder))


def build_for(dataset: Dataset, name: str, config: Mapping[str, Any]) -> Model:
    """Build a model with the input shape and number of classes, or labels, of a data set.

    Args:
        dataset: data set; sets the arguments `input_shape`, `inputs`, `classes` and `outputs` of
            the model unless given in `config`.
        name: one of `MODELS`, one that a package registers, or `module:object` of a model, a module
            or a function or class that makes one.
        config: other keyword arguments of the model.

    Raises:
        ValueError: as in `build`, or the model does not accept the data set's samples, which of
            networks with an embedding must be the numbers of words, or has too few outputs.
    """
    defaults = {
        "input_shape": list(dataset.input_shape),
        "inputs": prod(dataset.input_shape),
        "classes": dataset.num_outputs,
        "outputs": dataset.num_outputs,
    }
    check_name("model", name)
    reference = reference_of(name, "models") if name not in MODELS else None
    if reference is not None:
        return _own(name, reference, dataset, {**defaults, **config})
    known: dict[str, Any] = {**registered("models"), **MODELS}
    accepted = named_arguments(chosen("model", name, known))
    model = build(name, {k: v for k, v in defaults.items() if k in accepted} | dict(config))
    _check_fits(model, name, dataset)
    if name in EMBEDDING and len(dataset.input_shape) == 1:
        _check_words(model, name, dataset)
    return model if dataset.label_sets is None else replace(model, likelihood="bernoulli")


def _own(name: str, reference: str, dataset: Dataset, config: Mapping[str, Any]) -> Model:
    """The model of an object of one's own; of `config`, it is given what it takes."""
    found = imported(reference, "model", OWN)
    if not callable(found) and not isinstance(found, Model):
        raise misfit("model", reference, found, OWN)
    if isinstance(found, Model | nn.Module):
        network: Any = found
    else:
        accepted = keywords(found)
        options = {k: v for k, v in config.items() if k in accepted or k not in SHAPES}
        check_keys(f"model {name!r}", found, options)
        build = partial(found, **typed_options(options, found))
        made = made_by(reference, "model", build)
        if not isinstance(made, Model | nn.Module):
            raise misfit("model", reference, made, OWN)
        network = made if isinstance(made, Model) else build
    targets = torch.as_tensor(dataset.labelled(dataset.targets[:1]))
    inputs = torch.as_tensor(dataset.inputs[:1])
    model = as_model(network, inputs, targets, name, f"dataset {dataset.name!r}")
    _check_fits(model, name, dataset)
    return model


def _check_fits(model: Model, name: str, dataset: Dataset) -> None:
    what = "classes" if dataset.label_sets is None else "labels"
    if not _reads(model, dataset.input_shape) or model.num_outputs < dataset.num_outputs:
        raise ValueError(
            f"model {name!r} takes samples of shape {model.input_shape} and has "
            f"{model.num_outputs} outputs, dataset {dataset.name!r} has samples of shape "
            f"{dataset.input_shape} and {dataset.num_outputs} {what}"
        )


def _check_words(model: Model, name: str, dataset: Dataset) -> None:
    words, inputs = model.config["words"], dataset.inputs
    if (inputs != np.round(inputs)).any() or inputs.min() < 0 or inputs.max() >= words:
        within = inputs.min() >= 0 and inputs.max() <= 1
        raise ValueError(
            f"model {name!r} takes the numbers of words, whole numbers from 0 to {words - 1} with "
            f"words={words}; the inputs of dataset {dataset.name!r} are from {inputs.min():.6g} to "
            f"{inputs.max():.6g}"
            + (
                ", not all of them whole; word numbers are kept by scaled=False where they are "
                "read (in scenarios, a key of [data])"
                if within
                else ""
            )
        )


def _reads(model: Model, shape: tuple[int, ...]) -> bool:
    flattens_first = isinstance(next(model.module().children(), None), nn.Flatten)
    return model.input_shape == shape or (flattens_first and prod(model.input_shape) == prod(shape))
