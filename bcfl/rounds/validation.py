"""The one place where answers are checked, whichever executor they came from."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.clients import TRAIN
from bcfl.executors import Outcome
from bcfl.protocol.answers import ClientInfo, EvidenceSum, Failure, LossSum, Trained
from bcfl.protocol.comparison import BestCounts, SupportTest
from bcfl.protocol.prediction_sums import NUM_BINS, PredictionSums
from bcfl.protocol.requests import Request, Score, Train

LARGEST_PARAMETER = 1e15
"""Parameters beyond this come from training that diverged; their squares could leave float32."""
LARGEST_SUM = 1e30
"""Losses and precisions beyond this could overflow when those of many clients are added up."""


def checked(request: Request, outcome: Outcome, model: Model) -> Outcome:
    """The outcome itself if it is usable, else the failure that it is."""
    if isinstance(outcome, Failure):
        return outcome
    trouble = _trouble(request, outcome, model)
    if trouble:
        return Failure("invalid", f"client {request.client!r} sent {trouble}")
    return outcome


def _trouble(request: Request, outcome: object, model: Model) -> str:
    if isinstance(request, Train):
        return _training_trouble(outcome, model)
    if not isinstance(request, Score):
        return _description_trouble(outcome)
    if request.statistic == "prediction":
        return _prediction_trouble(outcome, model)
    if request.statistic == "best_counts":
        return _count_trouble(request, outcome)
    if request.statistic == "support":
        return _support_trouble(outcome)
    return _score_trouble(request, outcome, model)


def _description_trouble(outcome: object) -> str:
    if not isinstance(outcome, ClientInfo) or not isinstance(outcome.num_samples, Mapping):
        return "no description"
    counts = outcome.num_samples
    if not _is_count(counts.get(TRAIN)):
        return f"a description with {counts.get(TRAIN)!r} training samples"
    return "" if all(n == 0 or _is_count(n) for n in counts.values()) else "no numbers of samples"


def _prediction_trouble(outcome: object, model: Model) -> str:
    if not isinstance(outcome, PredictionSums):
        return "no prediction sums"
    shapes = {
        "confusion": (model.num_outputs, model.num_outputs),
        "bin_counts": (NUM_BINS,),
        "bin_confidence": (NUM_BINS,),
        "bin_correct": (NUM_BINS,),
    }
    for name, shape in shapes.items():
        array = np.asarray(getattr(outcome, name))
        if array.shape != shape or not (np.isfinite(array).all() and (array >= 0).all()):
            return f"prediction sums with unusable {name}"
    if not (math.isfinite(outcome.nll) and math.isfinite(outcome.brier)):
        return "prediction sums that are not finite"
    return ""


def _count_trouble(request: Score, outcome: object) -> str:
    if not isinstance(outcome, BestCounts) or not _is_count(outcome.num_samples):
        return "no counts"
    counts = np.asarray(outcome.counts)
    usable = counts.shape == (len(request.models),) and np.issubdtype(counts.dtype, np.integer)
    if not usable or (counts < 0).any() or not 1 <= counts.sum() <= outcome.num_samples:
        return "counts of the wrong shape or sum"
    return ""


def _support_trouble(outcome: object) -> str:
    if not isinstance(outcome, SupportTest) or not _is_count(outcome.num_samples):
        return "no support test"
    if not 0 <= outcome.p_value <= 1 or not 0 <= outcome.num_pairs <= outcome.num_samples:
        return "a support test whose numbers cannot be"
    return ""


def _score_trouble(request: Score, outcome: object, model: Model) -> str:
    if not isinstance(outcome, dict) or set(outcome) != set(request.models):
        return "scores of other models than asked"
    sums = list(outcome.values())
    if request.statistic == "loss":
        usable = all(isinstance(one, LossSum) and _loss_is_usable(one) for one in sums)
    else:
        usable = all(
            isinstance(one, EvidenceSum) and _evidence_is_usable(one, model) for one in sums
        )
    return "" if usable else f"a {request.statistic} that is not finite or has a wrong shape"


def _loss_is_usable(one: LossSum) -> bool:
    return abs(one.total) <= LARGEST_SUM and _is_count(one.num_samples)


def _evidence_is_usable(one: EvidenceSum, model: Model) -> bool:
    shapes = [(model.layout.num_parameters,)]
    return (
        abs(one.log_likelihood) <= LARGEST_SUM
        and _is_count(one.num_samples)
        and not _tensor_trouble(one.gradient, shapes, LARGEST_SUM)
        and not _tensor_trouble(one.curvature, shapes, LARGEST_SUM)
        and bool((one.curvature >= 0).all())
    )


def _training_trouble(outcome: object, model: Model) -> str:
    if not isinstance(outcome, Trained):
        return "no trained model"
    layout = model.layout
    wanted: Mapping[str, tuple[Collection[tuple[int, ...]], float]] = {
        "mean": ([(layout.num_parameters,)], LARGEST_PARAMETER),
        "buffers": ([(layout.num_buffers,)], LARGEST_SUM),
        "curvature": ([(layout.num_parameters,), ()], LARGEST_SUM),
    }
    for name, (shapes, largest) in wanted.items():
        trouble = _tensor_trouble(getattr(outcome, name), shapes, largest)
        if trouble:
            return f"a trained model whose {name} {trouble}"
    if outcome.sent is not None and not _is_choice(outcome.sent, layout.num_parameters):
        return "a trained model without a choice of what is sent"
    spreads = [slot for slot in layout.buffers if slot.name.endswith("running_var")]
    if any(bool((outcome.buffers[s.start : s.stop] < 0).any()) for s in spreads):
        return "a trained model with a negative running variance"
    if bool((outcome.curvature < 0).any()) or not _is_count(outcome.num_samples):
        return "a negative precision or a model trained on no sample"
    return ""


def _is_choice(sent: object, length: int) -> bool:
    return isinstance(sent, Tensor) and sent.dtype == torch.bool and sent.shape == (length,)


def _tensor_trouble(tensor: object, shapes: Collection[tuple[int, ...]], largest: float) -> str:
    if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.float32, torch.float64):
        return "is no tensor of float32 or float64"
    if tuple(tensor.shape) not in shapes:
        return f"has shape {tuple(tensor.shape)}"
    if not bool(torch.isfinite(tensor).all()):
        return "is not finite"
    if bool((tensor.abs() > largest).any()):
        return f"has entries beyond {largest:g}"
    return ""


def _is_count(number: object) -> bool:
    return isinstance(number, int | np.integer) and bool(number >= 1)
