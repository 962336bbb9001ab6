"""The one place where answers are checked, whichever executor they came from."""

from __future__ import annotations

import math

import torch

from bcfl.executors import Outcome
from bcfl.model import Model
from bcfl.prediction import PredictionSums
from bcfl.requests import ClientInfo, EvidenceSum, Failure, LossSum, Request, Score, Train, Trained


def checked(request: Request, outcome: Outcome, model: Model) -> Outcome:
    """The outcome itself if it is usable, else the failure that it is."""
    if isinstance(outcome, Failure):
        return outcome
    trouble = _trouble(request, outcome, model)
    if trouble:
        return Failure("invalid", f"client {request.client!r} sent {trouble}")
    return outcome


def _trouble(request: Request, outcome: Outcome, model: Model) -> str:
    if isinstance(request, Train):
        return _training_trouble(outcome, model)
    if not isinstance(request, Score):
        return "" if isinstance(outcome, ClientInfo) else "no description"
    if request.statistic == "prediction":
        good = isinstance(outcome, PredictionSums) and math.isfinite(outcome.nll)
        return "" if good else "prediction sums that are not finite"
    if not isinstance(outcome, dict) or set(outcome) != set(request.models):
        return "scores of other models than asked"
    sums = list(outcome.values())
    if all(isinstance(one, LossSum | EvidenceSum) and _finite(one) for one in sums):
        return ""
    return "a score that is not finite"


def _finite(one: LossSum | EvidenceSum) -> bool:
    if isinstance(one, LossSum):
        return math.isfinite(one.total) and one.num_samples > 0
    return math.isfinite(one.log_likelihood) and bool(
        torch.isfinite(one.gradient).all() and torch.isfinite(one.curvature).all()
    )


def _training_trouble(outcome: Outcome, model: Model) -> str:
    if not isinstance(outcome, Trained):
        return "no trained model"
    layout = model.layout
    wanted: dict[str, set[tuple[int, ...]]] = {
        "mean": {(layout.num_parameters,)},
        "buffers": {(layout.num_buffers,)},
        "curvature": {(layout.num_parameters,), ()},
    }
    for name, shapes in wanted.items():
        tensor = getattr(outcome, name)
        if tuple(tensor.shape) not in shapes:
            return f"a trained model whose {name} has shape {tuple(tensor.shape)}"
        if not bool(torch.isfinite(tensor).all()):
            return f"a trained model whose {name} is not finite"
    if bool((outcome.curvature < 0).any()) or outcome.num_samples < 1:
        return "a negative precision or a model trained on no sample"
    return ""
