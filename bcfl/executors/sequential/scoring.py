"""Scoring models on clients' samples without training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bcfl.architecture.evaluation import network_outputs
from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.data.view import View
from bcfl.executors.arithmetic import computing, in_full
from bcfl.executors.attempts import attempted
from bcfl.executors.batches import subset
from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.sample_values import SampleValues
from bcfl.protocol.statistics.statistic import (
    NetworkStatistic,
    OutputStatistic,
    PosteriorStatistic,
)


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
        requests: scores of clients in `clients`.
        seed: of the run, which picks the subsets.
    """
    outcomes: Outcomes = {}
    samples: dict[Score, _Samples] = {}
    for request in requests:
        view = clients[request.client].views.get(request.view)
        if view is None or len(view) == 0 or not request.statistic.fits(model, len(request.models)):
            outcomes[request] = Failure(
                "refused",
                f"client {request.client!r} cannot give {request.statistic.name} on "
                f"{request.view!r}",
            )
        else:
            samples[request] = _Samples.of(view, request, seed)
    parts = _parts(workspace, model, models, samples)
    for request, scored in samples.items():
        own = parts.get(request, {})
        failures = (part for part in own.values() if isinstance(part, Failure))
        outcomes[request] = next(failures, None) or attempted(
            _answer, request, scored, model, models, own
        )
    return outcomes


@dataclass(frozen=True, eq=False)
class _Samples:
    """The scored samples.

    Attributes:
        view: the samples.
        full: number of samples of the whole view, of which they may be a subset.
    """

    view: View
    full: int

    @classmethod
    def of(cls, view: View, request: Score, seed: int) -> _Samples:
        """The same samples for all models and rounds, so that sums over rounds can be compared."""
        chosen = subset(len(view), request.samples, seed, 0, request.client, "score")
        some = view if chosen is None else view.take(chosen.to(view.inputs.device))
        return cls(some, len(view))


def _parts(
    workspace: FlatModule,
    model: Model,
    models: Mapping[str, Posterior],
    samples: Mapping[Score, _Samples],
) -> dict[Score, dict[str, Any]]:
    """By request and model key, the contribution of each network, or why there is none."""
    asking: dict[str, list[Score]] = defaultdict(list)
    for request in samples:
        if not isinstance(request.statistic, PosteriorStatistic):
            for key in dict.fromkeys(request.models):
                asking[key].append(request)
    parts: dict[Score, dict[str, Any]] = defaultdict(dict)
    for key in sorted(asking):
        posterior = models[key]
        network = workspace.load(posterior.mean(model), posterior.buffers(model), training=False)
        for request, part in _of_outputs(network, model, samples, asking[key]):
            parts[request][key] = part
        for request, part in _of_network(network, model, samples, asking[key]):
            parts[request][key] = part
    return parts


def _of_outputs(
    network: nn.Module, model: Model, samples: Mapping[Score, _Samples], requests: Sequence[Score]
) -> Iterator[tuple[Score, Any]]:
    """The values of statistics of outputs, evaluated once for those that share them."""
    done: dict[object, Any] = {}
    for request in requests:
        if isinstance(request.statistic, OutputStatistic):
            values = request.statistic.values
            same = request.client, request.view, request.samples, values
            if same not in done:
                done[same] = attempted(_values, network, model, samples[request].view, values)
            yield request, done[same]


def _values(
    network: nn.Module, model: Model, view: View, values: SampleValues
) -> NDArray[np.float64]:
    outputs = network_outputs(network, view.inputs)
    return values(model.likelihood, outputs, view.targets).cpu().numpy()


def _of_network(
    network: nn.Module, model: Model, samples: Mapping[Score, _Samples], requests: Sequence[Score]
) -> list[tuple[Score, Any]]:
    """Statistics of one network, at full precision."""
    scores = [(r, r.statistic) for r in requests if isinstance(r.statistic, NetworkStatistic)]
    if not scores:
        return []
    device = samples[scores[0][0]].view.inputs.device
    with computing("full", device), in_full(device):
        return [
            (r, attempted(statistic.of_network, network, model, samples[r].view, samples[r].full))
            for r, statistic in scores
        ]


def _answer(
    request: Score,
    samples: _Samples,
    model: Model,
    models: Mapping[str, Posterior],
    parts: Mapping[str, Any],
) -> Outcome:
    statistic, view, device = request.statistic, samples.view, samples.view.inputs.device
    if isinstance(statistic, OutputStatistic):
        return combined(request, parts, view.targets, samples.full)
    if isinstance(statistic, PosteriorStatistic):
        with computing("full", device), in_full(device):
            return statistic.of_posteriors([models[key] for key in request.models], model, view)
    return {key: parts[key] for key in request.models}


def combined(
    request: Score, values: Mapping[str, Any], targets: torch.Tensor, full: int
) -> Outcome:
    """The answer to a request for a statistic of outputs.

    Args:
        request: for an `OutputStatistic`.
        values: by model key, (samples, ...) values of the statistic per sample.
        targets: (samples,) of the scored samples.
        full: number of samples of the whole view.
    """
    statistic = request.statistic
    assert isinstance(statistic, OutputStatistic)
    if statistic.elementwise:
        return {key: statistic.combined([values[key]], targets, full) for key in request.models}
    return statistic.combined([values[key] for key in request.models], targets, full)
