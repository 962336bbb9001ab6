"""Laplace approximation with a diagonal covariance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posteriors.curvature.diagonal import diagonal_curvature
from posteriors.curvature.likelihood import CurvatureKind, Likelihood
from posteriors.curvature.likelihood_curvature import DiagonalCurvature
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.fit import LocalFit, check_prior, copied, some_targets
from posteriors.local.laplace_fit import laplace_fit
from posteriors.networks.functional import free_indices
from posteriors.predictive import Link


@dataclass(frozen=True)
class DiagonalLaplace:
    """`laplace-diag`: independent parameters, any diagonal prior, networks of any size.

    Attributes:
        likelihood: What the network's outputs are parameters of.
        kind: Which curvature; `mc_ggn` draws targets from the seed.
        link: How its predictive turns logits into probabilities.
    """

    likelihood: Likelihood = "categorical"
    kind: CurvatureKind = "ggn"
    link: Link = "probit"

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        check_prior(module, prior)
        targets = some_targets(module, inputs, self.likelihood)
        diagonal_curvature(module, inputs, targets, likelihood=self.likelihood)

    def fit(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior: DiagonalGaussian,
        *,
        seed: int = 0,
    ) -> LocalFit:
        """Fit at the module's parameters, see `posteriors.LocalPosteriorFit.fit`."""
        check_prior(module, prior)
        values = diagonal_curvature(
            module,
            inputs,
            targets,
            kind=self.kind,
            likelihood=self.likelihood,
            generator=torch.Generator().manual_seed(seed),
        )
        free = free_indices(module).to(values.device)
        known = len(free) < len(values)
        structure = DiagonalCurvature(values[free], free) if known else DiagonalCurvature(values)
        twin = copied(module, inputs)
        return laplace_fit("laplace-diag", twin, (inputs, targets), prior, structure, self)
