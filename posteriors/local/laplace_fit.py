"""The common part of all Laplace approximations: a local posterior from a curvature."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood, log_likelihood
from posteriors.curvature.likelihood_curvature import LikelihoodCurvature
from posteriors.gaussians.covariance import StructuredGaussian
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.fit import (
    LocalFit,
    laplace_log_evidence,
    mode_of,
    of_likelihood,
    scatter_diagonal,
    uncertain_precision,
)
from posteriors.networks.functional import flat_parameters, outputs_at
from posteriors.predictive import Linearised, Link


class LaplaceOptions(Protocol):
    """The hyperparameters that every Laplace method has."""

    @property
    def likelihood(self) -> Likelihood:
        """What the outputs are parameters of."""
        ...

    @property
    def link(self) -> Link:
        """How the predictive turns logits into probabilities."""
        ...


def laplace_fit(
    method: str,
    module: nn.Module,
    data: tuple[Tensor, Tensor],
    prior: DiagonalGaussian,
    structure: LikelihoodCurvature,
    options: LaplaceOptions,
) -> LocalFit:
    """Put together the fit of a Laplace approximation at a module's parameters.

    Args:
        method: Name of the method.
        module: A copy of the network, owned by the fit.
        data: Inputs and targets, in the dtype of the module.
        prior: Proper prior over the flat parameter vector.
        structure: Curvature of the log likelihood at the module's parameters.
        options: Likelihood and link.
    """
    inputs, targets = data
    mode = flat_parameters(module)
    with torch.no_grad():
        outputs = outputs_at(module, mode, inputs)
        value = float(log_likelihood(outputs, targets, options.likelihood))
    covariance = structure.under(uncertain_precision(prior, structure))
    linear = Linearised(module, StructuredGaussian(mode, covariance), options.link)
    return LocalFit(
        method=method,
        prior=prior,
        mean=mode_of(module, prior),
        curvature=scatter_diagonal(structure, prior),
        log_evidence=laplace_log_evidence(value, mode, prior, structure),
        evidence_kind="laplace",
        predictive=of_likelihood(linear, options.likelihood),
        structure=structure,
    )
