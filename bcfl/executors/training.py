"""Local training: SGD with momentum on one client's samples, then the curvature there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from bcfl.clients import View
from bcfl.executors.batches import subset, training_batches
from bcfl.executors.flat_module import FlatModule
from bcfl.model import Likelihood, Model
from bcfl.posterior import Posterior
from bcfl.requests import Objective, Train, Trained
from bcfl.seeds import derive_seed
from posteriors import diagonal_curvature


def train_locally(
    workspace: FlatModule,
    model: Model,
    start: Posterior,
    view: View,
    request: Train,
    when: tuple[int, int],
) -> Trained:
    """Train from `start` on a client's samples.

    The loss is the mean over the batch, plus the prior term where the objective asks for it:
    prior_weight / (2 n) sum precision (parameters - prior mean)^2 with n the client's number of
    samples, so that prior_weight 1 has its optimum at the mode of the local posterior. A client
    whose batches hold one sample trains with frozen running statistics, since one has no variance.
    Layers that draw at random, such as dropout, draw by (seed, round, client) alone.

    Args:
        workspace: network to work in.
        model: its architecture.
        start: model to start from, with the prior that the client was sent.
        view: the client's training samples.
        request: client and objective.
        when: seed of the run and number of the round.
    """
    objective = request.objective
    mean, buffers = start.mean(model), start.buffers(model)
    batches = training_batches(
        len(view), objective.batch_size, objective.local_steps, *when, request.client
    ).to(view.inputs.device)
    module = workspace.load(mean, buffers, training=batches.shape[1] > 1)
    pull = (
        objective.prior_weight / len(view) * start.prior_precision(model)
        if objective.prior_weight > 0
        else None
    )
    losses = (
        mean_loss(model.likelihood, module(view.inputs[batch]), view.targets[batch])
        for batch in batches
    )
    with _seeded(derive_seed(*when, request.client, "training"), view.inputs.device):
        _descend(workspace, losses, objective, pull, mean)
    trained, statistics = workspace.read()
    curvature = _curvature(module, model.likelihood, view, request, when)
    return Trained(trained, statistics, curvature.to(trained), len(view))


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from a seed for a while; the global random state is put back afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield


def _descend(
    workspace: FlatModule,
    losses: Iterable[Tensor],
    objective: Objective,
    pull: Tensor | None,
    anchor: Tensor,
) -> None:
    """SGD with momentum; each loss is computed when it is asked for, at the parameters then."""
    parameters, gradients = workspace.parameters, workspace.gradients
    velocity = torch.zeros_like(parameters)
    gradients.zero_()
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            if objective.weight_decay:
                gradients.add_(parameters, alpha=objective.weight_decay)
            if pull is not None:
                gradients.addcmul_(pull, parameters - anchor)
            velocity.mul_(objective.momentum).add_(gradients)
            parameters.add_(velocity, alpha=-objective.learning_rate)
            gradients.zero_()


def mean_loss(likelihood: Likelihood, outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log-likelihood over a batch, nats (the Gaussian one without its constant)."""
    if likelihood == "categorical":
        return functional.cross_entropy(outputs, targets)
    return 0.5 * (outputs - targets.reshape(outputs.shape)).square().sum() / len(outputs)


def _curvature(
    module: nn.Module, likelihood: Likelihood, view: View, request: Train, when: tuple[int, int]
) -> Tensor:
    objective = request.objective
    match objective.curvature:
        case "samples":
            return torch.tensor(float(len(view)))
        case "uniform":
            return torch.tensor(1.0)
        case kind:
            chosen = subset(
                len(view), objective.curvature_samples, *when, request.client, "curvature"
            )
            used = view if chosen is None else view.take(chosen.to(view.inputs.device))
            curvature = diagonal_curvature(
                module, used.inputs, used.targets, kind=kind, likelihood=likelihood
            )
            return curvature * (len(view) / len(used))
