"""Local training: SGD with momentum on one client's samples, then the curvature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.data.view import View
from bcfl.executors.arithmetic import in_full
from bcfl.executors.batches import subset, training_batches
from bcfl.executors.flat_slices import FlatSlices
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.penalties import Penalties
from bcfl.executors.sgd import SgdStep, prior_pull
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import derive_seed
from posteriors import DiagonalGaussian, diagonal_curvature, local_posterior_fit
from posteriors.curvature.likelihood import Likelihood, negative_log_likelihood
from posteriors.networks.functional import eval_mode
from posteriors.torch_state import seeded

WITHOUT_DRAWS = (
    *("activation", "batchnorm", "container", "conv"),
    *("flatten", "linear", "normalization", "pooling"),
)
"""Modules of `torch.nn.modules` whose layers are deterministic, but for few exceptions."""


def fitted_posterior(
    module: nn.Module, model: Model, view: View, request: Train, start: Posterior, seed: int
) -> tuple[Tensor, Tensor]:
    """Mean and diagonal precision of the local posterior that the objective names.

    Args:
        module: the trained network.
        model: its architecture.
        view: the client's training samples, all of which are used.
        request: client and objective.
        start: initial model, with its prior.
        seed: of the fit.

    Raises:
        UnsupportedFitError: the method does not support the prior.
    """
    prior = DiagonalGaussian(start.mean(model), start.prior_precision(model))
    method = local_posterior_fit(request.objective.posterior, model.likelihood)
    with eval_mode(module), in_full(view.inputs.device):
        fit = method.fit(module, view.inputs, view.targets, prior, seed=seed)
    return fit.mean, fit.curvature


def reported_curvature(
    module: nn.Module,
    likelihood: Likelihood,
    view: View,
    request: Train,
    seed_and_round: tuple[int, int],
) -> Tensor:
    """The precision that the objective names: a scalar, or one entry per parameter.

    Curvatures are those of at most `curvature_samples` samples, rescaled to all. The targets that
    `mc_ggn` draws depend on seed, round and client alone.

    Args:
        module: the trained network.
        likelihood: what its outputs are parameters of.
        view: the client's training samples.
        request: client and objective.
        seed_and_round: seed of the run and number of the round.
    """
    objective = request.objective
    match objective.curvature:
        case "samples":
            return torch.tensor(float(len(view)))
        case "uniform":
            return torch.tensor(1.0)
        case kind:
            chosen = subset(
                len(view), objective.curvature_samples, *seed_and_round, request.client, "curvature"
            )
            used = view if chosen is None else view.take(chosen.to(view.inputs.device))
            seed = derive_seed(*seed_and_round, request.client, "curvature targets")
            with in_full(view.inputs.device):
                curvature = diagonal_curvature(
                    module,
                    used.inputs,
                    used.targets,
                    kind=kind,
                    likelihood=likelihood,
                    generator=torch.Generator().manual_seed(seed),
                    check=False,
                )
            return curvature * (len(view) / len(used))


def train_locally(
    workspace: FlatModule,
    model: Model,
    models: Mapping[str, Posterior],
    view: View,
    request: Train,
    seed_and_round: tuple[int, int],
) -> Trained:
    """Train from a model on a client's samples.

    The loss is the mean over the batch, plus the objective's terms, plus the prior term where the
    objective asks for it: prior_weight / (2 n) sum precision (parameters - prior mean)^2 with n the
    client's number of samples, so that prior_weight 1 has its optimum at the mode of the local
    posterior; its steps are implicit, see `SgdStep`. Parameters that need no gradient and frozen
    blocks stay as they are. Phases use the same batches. A client whose batches hold one sample
    trains with frozen running statistics, since one has no variance. Layers that draw at random,
    such as dropout, draw by (seed, round, client) alone.

    Args:
        workspace: network to work in.
        model: its architecture.
        models: those that the request names, by key: the start with the prior that the client was
            sent, and the references of the objective's terms.
        view: the client's training samples.
        request: client and objective.
        seed_and_round: seed of the run and number of the round.
    """
    objective, start = request.objective, models[request.start]
    mean, buffers = start.mean(model), start.buffers(model)
    batches = training_batches(
        len(view), objective.batch_size, objective.steps(len(view)), *seed_and_round, request.client
    ).to(view.inputs.device)
    training = batches.shape[1] > 1
    module = workspace.load(mean, buffers, training=training)
    penalties = Penalties.of(request, model, models)
    pull = prior_pull(objective, start, model, len(view))
    trained, statistics = mean, buffers
    free = tuple(block.name for block in model.blocks if not block.frozen)
    whole = not objective.phases and len(free) == len(model.blocks)
    for phase in objective.phases or (free,):
        losses = (
            negative_log_likelihood(
                outputs := module(view.inputs[batch]),
                view.targets[batch],
                model.likelihood,
                reduction="mean",
            )
            + penalties.of_outputs(outputs, view.inputs[batch])
            for batch in batches
        )
        step = SgdStep(
            objective=objective,
            anchor=mean,
            pull=pull,
            terms=penalties.of_parameter,
            shrinking=penalties.shrinking(request, model, model.trained & ~model.outside(phase)),
            frozen=None if whole and model.trains_all else _frozen(model, phase),
        )
        seed = derive_seed(*seed_and_round, request.client, "training")
        with _random_numbers(module, seed, view.inputs.device):
            _descend(workspace, losses, step)
        if whole:
            trained, statistics = workspace.read()
        else:
            trained, statistics = _assembled(workspace, model, phase, trained, statistics)
            again = (mean, buffers) if objective.against == "start" else (trained, statistics)
            workspace.load(*again, training=training)
    if not whole:
        workspace.load(trained, statistics, training=training)
    if objective.fits_posterior:
        seed = derive_seed(*seed_and_round, request.client, "posterior")
        # fits may use torch.func, which the views of the workspace do not support
        plain = FlatModule(model, view.inputs.device, view.inputs.dtype)
        module = plain.load(trained, statistics, training=training)
        trained, curvature = fitted_posterior(module, model, view, request, start, seed)
    else:
        curvature = reported_curvature(module, model.likelihood, view, request, seed_and_round)
    sent = None if objective.upload is None else objective.upload.sent(model, trained)
    return Trained(
        mean=trained,
        buffers=statistics,
        curvature=curvature.to(trained),
        num_samples=len(view),
        sent=sent,
    )


def _frozen(model: Model, phase: tuple[str, ...]) -> FlatSlices:
    """The parameters that are not trained in a phase."""
    return FlatSlices.of(~model.trained | model.outside(phase))


def _assembled(
    workspace: FlatModule, model: Model, phase: tuple[str, ...], trained: Tensor, buffers: Tensor
) -> tuple[Tensor, Tensor]:
    """Parameters and statistics of earlier phases, with the blocks of this phase replaced."""
    new, new_buffers = workspace.read()
    old, fresh = model.split(trained, buffers), model.split(new, new_buffers)
    parts = {name: fresh[name] if name in phase else old[name] for name in old}
    means = {name: part[0] for name, part in parts.items()}
    return model.join(means), model.join_buffers({name: part[1] for name, part in parts.items()})


def _random_numbers(
    module: nn.Module, seed: int, device: torch.device
) -> AbstractContextManager[None]:
    """Context in which layers that draw at random draw from a seed; others need none."""
    return seeded(seed, device) if _may_draw(module) else nullcontext()


def _may_draw(module: nn.Module) -> bool:
    """Whether some layer is not known to draw no random numbers in training."""
    return any(
        type(layer).__module__.removeprefix("torch.nn.modules.") not in WITHOUT_DRAWS
        or isinstance(layer, nn.RReLU | nn.MultiheadAttention | nn.FractionalMaxPool2d)
        for layer in module.modules()
    )


def _descend(workspace: FlatModule, losses: Iterable[Tensor], step: SgdStep) -> None:
    """SGD on losses that are evaluated lazily, at the current parameters."""
    parameters, gradients = workspace.parameters, workspace.gradients
    velocity = torch.zeros_like(parameters)
    gradients.zero_()
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            step(parameters, gradients, velocity)
            gradients.zero_()
