"""What a client reports of its likelihood once it has trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcfl.clients import View
from bcfl.executors.arithmetic import in_full
from bcfl.executors.batches import subset
from bcfl.model import Likelihood
from bcfl.requests import Train
from bcfl.seeds import derive_seed
from posteriors import diagonal_curvature


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
