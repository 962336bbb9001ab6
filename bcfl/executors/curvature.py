"""What a client reports of its likelihood once it has trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcfl.clients import View
from bcfl.executors.arithmetic import in_full
from bcfl.executors.batches import subset
from bcfl.model import Likelihood, Model
from bcfl.posterior import Posterior
from bcfl.requests import Train
from bcfl.seeds import derive_seed
from posteriors import DiagonalGaussian, diagonal_curvature, local_posterior_fit
from posteriors.network import eval_mode


def fitted_posterior(
    module: nn.Module, model: Model, view: View, request: Train, start: Posterior, seed: int
) -> tuple[Tensor, Tensor]:
    """Mean and diagonal precision of the local posterior that the objective names.

    Args:
        module: the trained network.
        model: its architecture.
        view: the client's training samples, all of which are used.
        request: client and objective.
        start: what the client was sent, with its prior.
        seed: of everything random in the fit.

    Raises:
        UnsupportedFitError: the method can't take the prior.
    """
    prior = DiagonalGaussian(start.mean(model), start.prior_precision(model))
    method = local_posterior_fit(request.objective.posterior, model.likelihood)
    with eval_mode(module), in_full(view.inputs.device):
        fit = method.fit(module, view.inputs, view.targets, prior, seed=seed)
    return fit.mean, fit.curvature


def reported_curvature(
    module: nn.Module, likelihood: Likelihood, view: View, request: Train, when: tuple[int, int]
) -> Tensor:
    """The precision that the objective names: a number, or one for each parameter.

    Curvatures are those of at most `curvature_samples` samples, rescaled to all. The targets that
    `mc_ggn` draws depend on seed, round and client alone.

    Args:
        module: the trained network.
        likelihood: what its outputs are parameters of.
        view: the client's training samples.
        request: client and objective.
        when: seed of the run and number of the round.
    """
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
            seed = derive_seed(*when, request.client, "curvature targets")
            with in_full(view.inputs.device):
                curvature = diagonal_curvature(
                    module,
                    used.inputs,
                    used.targets,
                    kind=kind,
                    likelihood=likelihood,
                    generator=torch.Generator().manual_seed(seed),
                )
            return curvature * (len(view) / len(used))
