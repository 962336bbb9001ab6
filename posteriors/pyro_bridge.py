"""Posteriors as Pyro distributions, and networks as Pyro programs.

Pyro is imported inside the functions, so that importing this module stays cheap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.networks.functional import outputs_at

SITE = "parameters"
"""Name of the latent variable in the programs of `network_program`."""


def to_pyro(gaussian: DiagonalGaussian) -> Any:  # noqa: ANN401 - pyro has no types
    """Convert a Gaussian to a `pyro.distributions` distribution.

    Args:
        gaussian: Gaussian with positive precision, (..., parameters).

    Returns:
        Independent normal distribution with event shape (..., parameters).

    Raises:
        ValueError: If a precision is zero.
    """
    import pyro.distributions as dist

    gaussian.require_proper()
    deviation = gaussian.precision.rsqrt().expand(gaussian.mean.shape)
    normals: Any = dist.Normal(gaussian.mean, deviation)
    return normals.to_event(gaussian.mean.ndim)


def mixture_to_pyro(gaussians: Sequence[DiagonalGaussian], log_weights: ArrayLike) -> Any:  # noqa: ANN401
    """Convert a mixture of Gaussians to a `pyro.distributions` distribution.

    Its event shape is that of a component's mean: (parameters,) for a mixture over single models,
    (models, parameters) for one over tuples of models. `log_prob` marginalises the component and is
    differentiable, so that gradient-based inference applies.

    Args:
        gaussians: Components of equal shape and dtype, at least one, of positive precision.
        log_weights: Log weights in nats, (components,), of any common offset; -inf drops one.

    Returns:
        Mixture distribution.

    Raises:
        ValueError: If numbers or shapes differ, a log weight is NaN or +inf or all are -inf, or a
            precision is zero.
    """
    import pyro.distributions as dist

    logs = torch.as_tensor(log_weights, dtype=torch.float64)
    if len(gaussians) == 0 or logs.shape != (len(gaussians),):
        raise ValueError(
            f"log_weights must hold one number per Gaussian (at least one), "
            f"got shape {tuple(logs.shape)} for {len(gaussians)}"
        )
    if bool(logs.isnan().any()) or abs(float(logs.max())) == torch.inf:
        raise ValueError(f"log_weights must be below +inf, not NaN, not all -inf, got {logs}")
    shapes = {tuple(gaussian.mean.shape) for gaussian in gaussians}
    if len(shapes) > 1:
        raise ValueError(f"gaussians must have equal shapes, got {sorted(shapes)}")
    kept = [g for g, log in zip(gaussians, logs.tolist(), strict=True) if log > -torch.inf]
    for gaussian in kept:
        gaussian.require_proper()
    means = torch.stack([g.mean for g in kept])
    deviations = torch.stack([g.precision.rsqrt().expand(g.mean.shape) for g in kept])
    weights: Any = dist.Categorical(logits=logs[logs > -torch.inf].to(means))
    normals: Any = dist.Normal(means, deviations)
    components = normals.to_event(means.ndim - 1)
    return _mixture_class()(weights, components)


@functools.cache
def _mixture_class() -> Any:  # noqa: ANN401
    """Pyro's mixture with a declared support, as its gradient-based samplers require."""
    import pyro.distributions as dist
    from torch.distributions import constraints

    class GaussianMixture(dist.MixtureSameFamily):  # type: ignore[misc]
        """A mixture of Gaussians with real support."""

        @constraints.dependent_property(is_discrete=False)
        def support(self) -> constraints.Constraint:
            """All real arrays of the event's shape."""
            independent: Any = constraints.independent
            everywhere: constraints.Constraint = independent(
                constraints.real, len(self.event_shape)
            )
            return everywhere

    return GaussianMixture


def network_program(
    module: nn.Module,
    prior: Any,  # noqa: ANN401 - pyro has no types
    likelihood: Likelihood = "categorical",
    to_parameters: Callable[[Tensor], Tensor] | None = None,
) -> Callable[[Tensor, Tensor | None], Tensor]:
    """Build a Pyro program that draws parameters from a prior and targets from the network.

    Args:
        module: Network with outputs (samples, outputs), used in eval mode.
        prior: A `pyro.distributions` distribution over the flat parameter vector with event shape
            (parameters,), such as from `to_pyro` or `mixture_to_pyro`.
        likelihood: What the network's outputs are parameters of.
        to_parameters: Map from the latent variable to the flat parameter vector; identity by
            default.

    Returns:
        Program of inputs (samples, ...) and targets (None to sample them) with the latent site
        "parameters" and the observed site "targets"; it returns the outputs.
    """
    import pyro
    import pyro.distributions as dist

    def program(inputs: Tensor, targets: Tensor | None = None) -> Tensor:
        latent = pyro.sample(SITE, prior)
        vector = latent if to_parameters is None else to_parameters(latent)
        outputs = outputs_at(module, vector, inputs)
        each: Any = dist.Normal(outputs, 1.0)
        if likelihood == "bernoulli":
            each = dist.Bernoulli(logits=outputs)
        predicted = (
            dist.Categorical(logits=outputs) if likelihood == "categorical" else each.to_event(1)
        )
        with pyro.plate("samples", len(inputs)):
            pyro.sample("targets", predicted, obs=targets)
        return outputs

    return program
