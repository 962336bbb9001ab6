"""Draws from the exact posterior of a tiny network: the reference for all approximations."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood, LogLikelihood, network_log_likelihood
from posteriors.evidence.sampling import importance_log_evidence
from posteriors.gaussians.covariance import DenseCovariance, StructuredGaussian
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.fit import LocalFit, UnsupportedFitError, check_prior, copied, of_likelihood
from posteriors.local.mode import find_mode
from posteriors.networks.functional import free_indices
from posteriors.predictive import Draws
from posteriors.torch_state import seeded


@dataclass(frozen=True, kw_only=True)
class NoUTurn:
    """`nuts`: Hamiltonian Monte Carlo with adapted path lengths (Hoffman and Gelman, 2014).

    One Pyro chain in float64, from a mode near the module's parameters, in coordinates in which
    the prior is standard. Takes any diagonal prior; refuses networks of more than a few
    parameters. The log evidence is an importance sampling estimate from the Gaussian that has the
    draws' mean and covariance.

    Attributes:
        likelihood: What the network's outputs are parameters of.
        draws: Draws that are kept.
        warmup: Draws before these, for adaptation.
        max_parameters: Most parameters that are sampled.
        evidence_draws: Draws behind the estimate of the log evidence.
    """

    likelihood: Likelihood = "categorical"
    draws: int = 1000
    warmup: int = 300
    max_parameters: int = 200
    evidence_draws: int = 1000

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        check_prior(module, prior)
        if prior.num_parameters > self.max_parameters:
            raise UnsupportedFitError(
                f"nuts samples at most max_parameters={self.max_parameters} parameters, "
                f"got {prior.num_parameters}"
            )
        if self.draws <= prior.num_parameters:
            raise UnsupportedFitError(
                f"nuts needs more draws than the {prior.num_parameters} parameters to estimate "
                f"their covariance, got draws={self.draws}"
            )
        if len(free_indices(module)) < prior.num_parameters:
            raise UnsupportedFitError("nuts needs all parameters to be trainable")
        copied(module, inputs)

    def fit(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior: DiagonalGaussian,
        *,
        seed: int = 0,
    ) -> LocalFit:
        """Sample from near the module's parameters, see `posteriors.LocalPosteriorFit.fit`."""
        self.check(module, inputs, prior)
        mode = find_mode(module, inputs, targets, prior, self.likelihood).parameters
        twin = copied(module, inputs).double()
        inputs = inputs.double() if inputs.is_floating_point() else inputs
        exact = DiagonalGaussian(
            prior.mean.double(), prior.precision.double().expand(prior.mean.shape)
        )
        log_likelihood = network_log_likelihood(twin, inputs, targets, self.likelihood)
        draws = self._sample(log_likelihood, exact, mode, seed)
        evidence = importance_log_evidence(
            log_likelihood, exact, _gaussian_of(draws), self.evidence_draws,
            torch.Generator().manual_seed(seed),
        )  # fmt: skip
        gained = draws.var(0).reciprocal() - exact.precision
        return LocalFit(
            method="nuts",
            prior=prior,
            mean=draws.mean(0).to(prior.mean),
            curvature=gained.clamp(min=0).to(prior.mean),
            log_evidence=evidence.log_evidence,
            evidence_kind="importance",
            predictive=of_likelihood(Draws(twin, draws), self.likelihood),
            num_floored=int((gained < 0).sum()),
        )

    def _sample(
        self, log_likelihood: LogLikelihood, prior: DiagonalGaussian, mode: Tensor, seed: int
    ) -> Tensor:
        """Draws (draws, parameters); the global random state is restored."""
        infer: Any = importlib.import_module("pyro.infer")
        deviation = prior.precision.rsqrt()

        def potential(latent: dict[str, Tensor]) -> Tensor:
            whitened = latent["whitened"]
            vector = prior.mean + deviation * whitened
            return 0.5 * whitened.square().sum() - log_likelihood(vector)

        start = {"whitened": (mode - prior.mean) / deviation}
        with seeded(seed, mode.device):
            chain = infer.MCMC(
                infer.NUTS(potential_fn=potential),
                num_samples=self.draws,
                warmup_steps=self.warmup,
                initial_params=start,
                disable_progbar=True,
            )
            chain.run()
        whitened: Tensor = chain.get_samples()["whitened"]
        return prior.mean + deviation * whitened


def _gaussian_of(draws: Tensor) -> StructuredGaussian:
    """The Gaussian with the draws' mean and covariance.

    Raises:
        ValueError: If the covariance is singular.
    """
    covariance = draws.T.cov().reshape(draws.shape[1], draws.shape[1])
    indices = torch.arange(draws.shape[1])
    precision, failed = torch.linalg.inv_ex(covariance)
    if failed:
        raise ValueError(
            "the covariance of the draws is singular: take more draws, or a sharper prior"
        )
    return StructuredGaussian(draws.mean(0), DenseCovariance.from_precision(precision, indices))
