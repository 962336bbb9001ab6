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
    layout = model.layout
    if not isinstance(outcome, Trained):
        return "no trained model"
    if outcome.mean.shape != (layout.num_parameters,):
        return f"{tuple(outcome.mean.shape)} parameters instead of {layout.num_parameters}"
    if outcome.buffers.shape != (layout.num_buffers,):
        return f"{tuple(outcome.buffers.shape)} buffers instead of {layout.num_buffers}"
    if outcome.curvature.ndim and outcome.curvature.shape != outcome.mean.shape:
        return f"a precision of shape {tuple(outcome.curvature.shape)}"
    for name in ("mean", "buffers", "curvature"):
        if not bool(torch.isfinite(getattr(outcome, name)).all()):
            return f"a trained model whose {name} is not finite"
    if bool((outcome.curvature < 0).any()):
        return "a negative precision"
    return "" if outcome.num_samples > 0 else "a model trained on no sample"
