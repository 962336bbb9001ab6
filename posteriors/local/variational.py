"""Variational posterior with independent parameters, by stochastic gradients in Pyro."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood, network_log_likelihood
from posteriors.curvature.likelihood_curvature import DiagonalCurvature
from posteriors.gaussians.covariance import StructuredGaussian
from posteriors.gaussians.divergence import kl
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.fit import (
    LocalFit,
    UnsupportedFitError,
    check_prior,
    copied,
    mode_of,
    of_likelihood,
)
from posteriors.networks.functional import free_indices
from posteriors.predictive import MonteCarlo
from posteriors.pyro_bridge import SITE, network_program, to_pyro
from posteriors.torch_state import seeded


@dataclass(frozen=True, kw_only=True)
class Variational:
    """`variational`: the diagonal Gaussian nearest to the posterior in reverse divergence.

    Pyro's `AutoDiagonalNormal` under stochastic variational inference (Kucukelbir et al., 2017),
    in coordinates in which the prior is standard, with a step size that decays to a tenth. The
    means and log deviations of the second half of the steps are averaged (Dhaka et al., 2020). It
    takes any diagonal prior and starts at the module's parameters.

    Attributes:
        likelihood: What the network's outputs are parameters of.
        steps: Gradient steps, all on the full data.
        draws: Draws of the parameters per step.
        step_size: First step size of Adam, in prior deviations.
        start_deviation: First posterior deviation, in prior deviations.
        evidence_draws: Draws behind the lower bound on the log evidence.
    """

    likelihood: Likelihood = "categorical"
    steps: int = 1000
    draws: int = 1
    step_size: float = 0.03
    start_deviation: float = 0.1
    evidence_draws: int = 200

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        check_prior(module, prior)
        if len(free_indices(module)) < len(prior.mean):
            raise UnsupportedFitError("variational needs all parameters to be trainable")
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
        """Fit from the module's parameters, see `posteriors.LocalPosteriorFit.fit`."""
        self.check(module, inputs, prior)
        twin = copied(module, inputs)
        log_likelihood = network_log_likelihood(twin, inputs, targets, self.likelihood)
        nearest = self._nearest(twin, (inputs, targets), prior, seed)
        posterior = StructuredGaussian.from_diagonal(nearest)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            draws = posterior.sample(self.evidence_draws, generator)
            fit = float(torch.stack([log_likelihood(draw) for draw in draws]).mean())
        gained = nearest.precision - prior.precision
        curvature = gained.clamp(min=0)
        return LocalFit(
            method="variational",
            prior=prior,
            mean=nearest.mean,
            curvature=curvature,
            log_evidence=fit - float(kl(nearest, prior)),
            evidence_kind="lower bound",
            predictive=of_likelihood(MonteCarlo(twin, posterior, seed=seed), self.likelihood),
            structure=DiagonalCurvature(curvature),
            num_floored=int((gained < 0).sum()),
        )

    def _nearest(
        self, module: nn.Module, data: tuple[Tensor, Tensor], prior: DiagonalGaussian, seed: int
    ) -> DiagonalGaussian:
        """Run Pyro with its own parameter store; the global random state is restored."""
        import pyro

        infer: Any = importlib.import_module("pyro.infer")
        autoguide: Any = importlib.import_module("pyro.infer.autoguide")
        optim: Any = importlib.import_module("pyro.optim")
        deviation = prior.precision.rsqrt()
        start = (mode_of(module, prior) - prior.mean) / deviation
        standard = to_pyro(DiagonalGaussian.isotropic(torch.zeros_like(prior.mean), 1.0))
        program = network_program(
            module, standard, self.likelihood, lambda z: prior.mean + deviation * z
        )
        decay = 0.1 ** (1 / self.steps)
        optimiser = optim.ClippedAdam({"lr": self.step_size, "lrd": decay})
        with seeded(seed, start.device), pyro.get_param_store().scope():
            guide = autoguide.AutoDiagonalNormal(
                program, init_loc_fn=autoguide.init_to_value(values={SITE: start}),
                init_scale=self.start_deviation,
            )  # fmt: skip
            descent = infer.SVI(
                program, guide, optimiser, infer.Trace_ELBO(num_particles=self.draws)
            )
            centre, log_spread = torch.zeros_like(prior.mean), torch.zeros_like(prior.mean)
            kept = range(self.steps // 2, self.steps)
            for step in range(self.steps):
                descent.step(*data)
                if step in kept:
                    centre += guide.loc.detach() / len(kept)
                    log_spread += guide.scale.detach().log() / len(kept)
        mean = prior.mean + deviation * centre
        return DiagonalGaussian(mean, (deviation * log_spread.exp()).square().reciprocal())
