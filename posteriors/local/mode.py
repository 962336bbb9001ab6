"""Finding the most probable parameters of a network under a Gaussian prior."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood, LogLikelihood, network_log_likelihood
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.fit import copied
from posteriors.networks.functional import flat_parameters, free_indices


@dataclass(frozen=True, eq=False)
class Mode:
    """Where a search for the most probable parameters ended.

    Attributes:
        parameters: Flat parameter vector, (parameters,), float64.
        gradient: Largest absolute derivative of the log joint density there, nats per unit.
        evaluations: Evaluations of the log joint density.
    """

    parameters: Tensor
    gradient: float
    evaluations: int


def find_mode(
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    prior: DiagonalGaussian,
    likelihood: Likelihood = "categorical",
    max_evaluations: int = 2000,
) -> Mode:
    """Ascend from the module's parameters to a mode of likelihood times prior, in float64.

    Full-batch quasi-Newton steps (limited-memory BFGS) in eval mode: meant for small networks, for
    which exact fusion and Laplace evidence presume a true mode. The module is left as it was;
    parameters that need no gradient stay.

    Args:
        module: Network with outputs (samples, outputs).
        inputs: Inputs, (samples, ...).
        targets: Class indices (samples,), or values or labels (samples, outputs).
        prior: Prior over the flat parameter vector, (parameters,).
        likelihood: What the outputs are parameters of.
        max_evaluations: Bound on evaluations of the log joint density.

    Raises:
        UnsupportedFitError: If a copy of the network does not compute the same.
        ValueError: If shapes don't fit or the prior is flat somewhere.
    """
    with torch.inference_mode(False), torch.enable_grad():
        twin = copied(module, inputs).double()
        inputs = inputs.double() if inputs.is_floating_point() else inputs.clone()
        log_likelihood = network_log_likelihood(twin, inputs.clone(), targets.clone(), likelihood)
        return _climb(log_likelihood, twin, prior, max_evaluations)


def _climb(
    log_likelihood: LogLikelihood, module: nn.Module, prior: DiagonalGaussian, max_evaluations: int
) -> Mode:
    start = flat_parameters(module)
    free = free_indices(module).to(start.device)
    if len(free) == 0:
        return Mode(start, 0.0, 0)
    moving = start[free].clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS(
        [moving], max_iter=max_evaluations, max_eval=max_evaluations, history_size=50,
        tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe",
    )  # fmt: skip
    evaluations = 0

    def descend() -> Tensor:
        nonlocal evaluations
        evaluations += 1
        optimiser.zero_grad()
        vector = start.index_put((free,), moving)
        loss = -(log_likelihood(vector) + prior.log_density(vector))
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(descend)  # type: ignore[no-untyped-call]
    descend()
    assert moving.grad is not None
    mode = start.index_put((free,), moving.detach())
    return Mode(mode, float(moving.grad.abs().max()), evaluations)
