"""Warnings of targets and outputs that may mean something else than what they are taken for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.architecture.probing import outputs_of
from bcfl.data.clients import ClientData
from bcfl.data.names import TRAIN
from bcfl.rounds.fitting import training_of
from posteriors.torch_state import seeded

SMALLEST, LARGEST = 0.1, 10.0
"""Range of the scale of targets that noise of variance 1 suits."""


FEW = 3
"""Samples by which outputs of classes are taken for probabilities, as they sum to 1."""
SEVERAL = 8
"""Samples by which outputs of labels are."""
LEAST_LABELS = 20
"""Outputs for each of these, of labels and of networks initialised anew, by which they are."""


class TargetsWarning(UserWarning):
    """Targets look like those of another kind of prediction, or are far from the model's noise."""


class OutputsWarning(UserWarning):
    """Outputs of a network seem to be probabilities, and not logits."""


def warn_of_kind(model: Model, clients: Sequence[ClientData]) -> None:
    """Warn where the kind of prediction that targets were taken for may not be the one meant.

    For models whose likelihood was found from the type of the targets.

    Args:
        model: with that likelihood.
        clients: with training targets (samples, outputs).

    Warns:
        TargetsWarning: numbers that are all 0 or 1 were taken for regression, or rows with a single
            1 each for regression or several labels.
    """
    if model.likelihood == "categorical":
        return
    targets = [data.views[TRAIN].targets for data in clients]
    ends = {float(end) for each in targets for end in (each.min(), each.max())}
    if ends != {0.0, 1.0} or not all(map(_is_binary, targets)):
        return
    rows = model.num_outputs > 1
    one_hot = rows and all(bool((each.sum(dim=1) == 1).all()) for each in targets)
    if model.likelihood == "gaussian":
        _warn(
            f"targets are floating-point numbers, so that the model does regression (gaussian), but"
            f" all are 0 or 1{', with one 1 in each row' * one_hot}; for classes give one whole "
            f"number per sample{', `numpy.asarray(targets).argmax(axis=1)`' * one_hot}"
            + ", for several labels per sample `numpy.asarray(targets, int)`" * rows
            + "; a bcfl.Model with likelihood='gaussian' keeps the regression without this warning"
        )
    elif one_hot:
        _warn(
            "targets are rows of 0 and 1, so that the model predicts several labels per sample "
            "(bernoulli), but each row has one 1; for classes give "
            "`numpy.asarray(targets).argmax(axis=1)`; a bcfl.Model with likelihood='bernoulli' "
            "keeps the labels without this warning"
        )


def warn_of_probabilities(model: Model, data: ClientData) -> None:
    """Warn where the outputs of a classifier are probabilities in place of logits.

    Args:
        model: with any likelihood; only more than one class and labels are checked.
        data: whose first training samples are tried.

    Warns:
        OutputsWarning: the outputs of each sample lie between 0 and 1, and those of classes sum to
            1. Logits of few labels may lie there, too, so that those of several networks are tried,
            each initialised anew.
    """
    classes = model.likelihood == "categorical"
    if model.likelihood == "gaussian" or (classes and model.num_outputs == 1):
        return
    samples = data.views[TRAIN].inputs[: FEW if classes else SEVERAL]
    whose = training_of(data)
    networks = 1 if classes else ceil(LEAST_LABELS / model.num_outputs)
    if all(_returns_probabilities(model, seed, samples, whose) for seed in range(networks)):
        warnings.warn(
            f"the outputs of {model!r} are between 0 and 1{' and sum to 1' * classes} for each of "
            f"{len(samples)} samples of {whose}, as probabilities do; networks must return "
            "logits, from which the probabilities are computed: leave out the "
            f"{'softmax' if classes else 'sigmoid'} at the end, or else networks learn "
            "more slowly and all probabilities are flat",
            OutputsWarning,
            stacklevel=5,  # the caller of Federation
        )


def _returns_probabilities(model: Model, seed: int, samples: Tensor, whose: str) -> bool:
    """Whether the outputs of a network, initialised from a seed, could be probabilities."""
    module = model.module(seed)
    with seeded(seed):
        parts = [outputs_of(module, one, repr(model), whose) for one in torch.split(samples, 1)]
    outputs = torch.cat(parts)
    if not bool(((outputs >= 0) & (outputs <= 1)).all()):
        return False
    sums = outputs.sum(dim=1)
    return model.likelihood != "categorical" or bool(
        torch.isclose(sums, torch.ones_like(sums)).all()
    )


def warn_of_scale(model: Model, clients: Sequence[ClientData]) -> None:
    """Warn where numbers to be predicted are far from the variance 1 of the model's noise.

    Args:
        model: with any likelihood; only a Gaussian has noise.
        clients: whose training targets are (samples, outputs).

    Warns:
        TargetsWarning: a root mean square is large, or a standard deviation small.
    """
    if model.likelihood != "gaussian":
        return
    targets = torch.cat([data.views[TRAIN].targets.double() for data in clients])
    sizes, spreads = targets.square().mean(dim=0).sqrt(), targets.std(dim=0, correction=0)
    if bool((sizes > LARGEST).any()):
        _warn(_far("root mean square", sizes.max(), "far above"))
    elif bool(((spreads > 0) & (spreads < SMALLEST)).any()):
        _warn(_far("standard deviation", spreads[spreads > 0].min(), "far below"))


def _is_binary(targets: Tensor) -> bool:
    return bool(((targets == 0) | (targets == 1)).all())


def _far(measure: str, value: Tensor, where: str) -> str:
    return (
        f"targets have a {measure} of {value.item():.3g}, {where} that of the noise: outputs are "
        "means of Gaussians of variance 1, by which networks are trained and clients associated; "
        "standardise the targets, such as `(y - mean) / std` with one mean and one std for all "
        "clients. The option `calibration` alone does not help, since it fits the variance of "
        "predictions after the run"
    )


def _warn(message: str) -> None:
    warnings.warn(message, TargetsWarning, stacklevel=5)  # the caller of Federation
