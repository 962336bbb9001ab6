"""Validation of answers, whatever the executor; statistics validate their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.names import TRAIN
from bcfl.executors import Outcome
from bcfl.protocol.answers import ClientInfo, Failure, Trained
from bcfl.protocol.checks import LARGEST_SUM, is_count, tensor_trouble
from bcfl.protocol.requests import Request, Score, Train

LARGEST_PARAMETER = 1e15
"""Parameters beyond this come from training that diverged; their squares could leave float32."""


def checked(request: Request, outcome: Outcome, model: Model) -> Outcome:
    """The answer if it is valid, else a `Failure` of kind `invalid`; failures are passed on.

    Args:
        request: what the client was sent.
        outcome: its answer, or a failure.
        model: architecture of the federation.
    """
    if isinstance(outcome, Failure):
        return outcome
    try:
        trouble = _trouble(request, outcome, model)
    except Exception as error:  # parts of any type may come over a network
        trouble = f"an answer that cannot be checked ({type(error).__name__}: {error})"
    if trouble:
        return Failure("invalid", f"client {request.client!r} sent {trouble}")
    return outcome


def _trouble(request: Request, outcome: object, model: Model) -> str:
    match request:
        case Train():
            return _training_trouble(outcome, model)
        case Score(statistic=statistic, models=keys):
            return statistic.trouble(outcome, model, keys)
    return _description_trouble(outcome)


def _description_trouble(outcome: object) -> str:
    if not isinstance(outcome, ClientInfo) or not isinstance(outcome.num_samples, Mapping):
        return "no description"
    counts = outcome.num_samples
    if not is_count(counts.get(TRAIN)):
        return f"a description with {counts.get(TRAIN)!r} training samples"
    return "" if all(n == 0 or is_count(n) for n in counts.values()) else "no numbers of samples"


def _training_trouble(outcome: object, model: Model) -> str:
    if not isinstance(outcome, Trained):
        return "no trained model"
    layout = model.layout
    expected: Mapping[str, tuple[Collection[tuple[int, ...]], float]] = {
        "mean": ([(layout.num_parameters,)], LARGEST_PARAMETER),
        "buffers": ([(layout.num_buffers,)], LARGEST_SUM),
        "curvature": ([(layout.num_parameters,), ()], LARGEST_SUM),
    }
    for name, (shapes, largest) in expected.items():
        trouble = tensor_trouble(getattr(outcome, name), shapes, largest)
        if trouble:
            return f"a trained model whose {name} {trouble}"
    if outcome.sent is not None and not _is_choice(outcome.sent, layout.num_parameters):
        return "a trained model without a choice of what is sent"
    spreads = [slot for slot in layout.buffers if slot.name.endswith("running_var")]
    if any(bool((outcome.buffers[s.start : s.stop] < 0).any()) for s in spreads):
        return "a trained model with a negative running variance"
    if bool((outcome.curvature < 0).any()) or not is_count(outcome.num_samples):
        return "a negative precision or a model trained on no sample"
    return ""


def _is_choice(sent: object, length: int) -> bool:
    return isinstance(sent, Tensor) and sent.dtype == torch.bool and sent.shape == (length,)
