"""Scoring models on clients' samples without training."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import scipy.special
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bcfl.architecture.model import Likelihood, Model
from bcfl.data.clients import ClientData, View
from bcfl.executors.arithmetic import in_full
from bcfl.executors.batches import slices, subset
from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import EvidenceSum, Failure, LossSum
from bcfl.protocol.comparison import BestCounts, SampleFit, SupportTest, TestedLoss
from bcfl.protocol.prediction_sums import Pooling, PredictionSums
from bcfl.protocol.requests import Score
from posteriors import diagonal_curvature
from posteriors.curvature.likelihood import negative_log_likelihood

CHUNK = 2048
CACHED = 2**17
"""How many numbers of inputs a CPU takes at a time, so that what layers make of them stays near."""


def score_models(
    workspace: FlatModule,
    model: Model,
    models: Mapping[str, Posterior],
    clients: Mapping[str, ClientData],
    requests: Sequence[Score],
    seed: int,
) -> Outcomes:
    """Answer score requests, loading each model once.

    Args:
        workspace: network to work in.
        model: its architecture.
        models: posteriors by key.
        clients: the clients' data.
        requests: what to score; all clients are known here.
        seed: of the run, which picks the subsets.
    """
    outcomes: Outcomes = {}
    views: dict[Score, View] = {}
    asking: dict[str, list[Score]] = defaultdict(list)
    for request in requests:
        view = clients[request.client].views.get(request.view)
        if view is None or len(view) == 0 or not _fits(request, model):
            outcomes[request] = Failure(
                "refused",
                f"client {request.client!r} cannot give {request.statistic} on {request.view!r}",
            )
            continue
        views[request] = _subset(view, request, seed)
        for key in dict.fromkeys(request.models):
            asking[key].append(request)
    parts: dict[Score, dict[str, object]] = defaultdict(dict)
    for key in sorted(asking):
        posterior = models[key]
        module = workspace.load(posterior.mean(model), posterior.buffers(model), training=False)
        done: dict[Score, object] = {}
        for request in asking[key]:
            same = replace(request, models=(), weights=(), epsilon=0.0)
            if same not in done:
                full = len(clients[request.client].views[request.view])
                done[same] = _one(module, model.likelihood, views[request], request, full)
            parts[request][key] = done[same]
    return outcomes | {request: _answer(request, part, views) for request, part in parts.items()}


def _fits(request: Score, model: Model) -> bool:
    """Whether the model has what is asked for: classes to predict, two models to compare."""
    if request.statistic == "support" and len(request.models) != 2:
        return False
    classes = request.statistic == "prediction" or request.loss == "capped"
    return not classes or model.likelihood == "categorical"


def _subset(view: View, request: Score, seed: int) -> View:
    """The same samples for all models and rounds, so that sums over rounds can be compared."""
    chosen = subset(len(view), request.samples, seed, 0, request.client, "score")
    return view if chosen is None else view.take(chosen.to(view.inputs.device))


def _one(
    module: nn.Module, likelihood: Likelihood, view: View, request: Score, full: int
) -> object:
    match request.statistic:
        case "loss":
            return loss_sum(sample_losses(module, likelihood, view).cpu().numpy(), full)
        case "evidence":
            with in_full(view.inputs.device):
                return _evidence_sum(module, likelihood, view, full)
        case "prediction":
            return _predictions(module, view, request.pooling)
        case "best_counts":
            return sample_losses(module, likelihood, view).cpu().numpy()
        case "support":
            return _sample_fit(module, likelihood, view, request.loss)


def _answer(request: Score, parts: dict[str, object], views: Mapping[Score, View]) -> Outcome:
    if request.statistic == "support":
        own, other = (cast(SampleFit, parts[key]) for key in request.models)
        return SupportTest.of(own, other, request.epsilon)
    if request.elementwise:
        return {key: parts[key] for key in request.models}  # type: ignore[return-value]
    arrays = {key: np.asarray(part) for key, part in parts.items()}
    return together(request, arrays, views[request].targets)


def together(request: Score, parts: Mapping[str, NDArray[np.float64]], targets: Tensor) -> Outcome:
    """The answer to a score of several models together.

    Args:
        request: of statistic `best_counts` or `prediction`.
        parts: by model, losses (samples,), or probabilities (samples, classes), or logits where
            those are averaged.
        targets: (samples,) true classes.
    """
    if request.statistic == "best_counts":
        return BestCounts.of(np.stack([parts[key] for key in request.models]))
    mixture = np.zeros(1)
    for key, weight in zip(request.models, request.weights, strict=True):
        mixture = mixture + weight * parts[key]
    if request.pooling == "logits":
        mixture = scipy.special.softmax(mixture, axis=1)
    if not np.isfinite(mixture).all():
        return Failure("invalid", f"client {request.client!r} predicted NaN")
    return PredictionSums.of(mixture, targets.cpu().numpy())


def rows_at_once(inputs: Tensor) -> int:
    """How many samples of (samples, ...) go through a network at a time."""
    if inputs.device.type != "cpu":
        return CHUNK
    return min(CHUNK, max(1, CACHED // max(1, inputs[:1].numel())))


def _outputs(module: nn.Module, view: View) -> Iterable[tuple[Tensor, Tensor]]:
    with torch.no_grad():
        for part in slices(len(view), rows_at_once(view.inputs)):
            yield module(view.inputs[part]), view.targets[part]


def sample_losses(module: nn.Module, likelihood: Likelihood, view: View) -> Tensor:
    """(samples,) float64 negative log-likelihood of each sample, nats."""
    pairs = _outputs(module, view)
    return torch.cat(
        [
            negative_log_likelihood(outputs.double(), targets, likelihood)
            for outputs, targets in pairs
        ]
    )


def loss_sum(losses: NDArray[np.float64], full: int) -> LossSum:
    """The total over all samples, estimated from a subset drawn without replacement.

    Args:
        losses: (samples,) of those that were scored, nats.
        full: number of all samples.
    """
    count = len(losses)
    scale = full / count
    spread = float(losses.std(ddof=1)) if 1 < count < full else 0.0
    error = full * spread / math.sqrt(count) * math.sqrt(max(1.0 - count / full, 0.0))
    return LossSum(scale * float(losses.sum()), error, full)


def _sample_fit(
    module: nn.Module, likelihood: Likelihood, view: View, kind: TestedLoss
) -> SampleFit:
    losses = sample_losses(module, likelihood, view).cpu().numpy()
    if kind == "raw":
        return SampleFit.raw(losses)
    pairs = list(_outputs(module, view))
    right = torch.cat([outputs.argmax(1) == targets for outputs, targets in pairs])
    return SampleFit.capped(losses, right.cpu().numpy(), pairs[0][0].shape[1])


def _evidence_sum(module: nn.Module, likelihood: Likelihood, view: View, full: int) -> EvidenceSum:
    scale = full / len(view)
    losses = sample_losses(module, likelihood, view)
    loss = negative_log_likelihood(module(view.inputs), view.targets, likelihood, reduction="sum")
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    slopes = iter(torch.autograd.grad(loss, trained))
    gradient = torch.cat(
        [
            (next(slopes) if parameter.requires_grad else torch.zeros_like(parameter)).reshape(-1)
            for parameter in module.parameters()
        ]
    )
    curvature = diagonal_curvature(module, view.inputs, view.targets, likelihood=likelihood)
    return EvidenceSum(-scale * float(losses.sum()), -scale * gradient, scale * curvature, full)


def _predictions(module: nn.Module, view: View, pooling: Pooling) -> NDArray[np.float64]:
    """(samples, classes) probabilities, or logits where those are averaged."""
    logits = torch.cat([outputs.double() for outputs, _ in _outputs(module, view)])
    values = logits if pooling == "logits" else logits.softmax(1)
    return values.cpu().numpy()
