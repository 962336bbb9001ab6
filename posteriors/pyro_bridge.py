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
    """A `pyro.distributions` Gaussian whose events have the shape of the mean.

    Raises:
        ValueError: If a precision is zero.
    """
    import pyro.distributions as dist

    gaussian.require_proper()
    deviation = gaussian.precision.rsqrt().expand(gaussian.mean.shape)
    normals: Any = dist.Normal(gaussian.mean, deviation)
    return normals.to_event(gaussian.mean.ndim)


def mixture_to_pyro(gaussians: Sequence[DiagonalGaussian], log_weights: ArrayLike) -> Any:  # noqa: ANN401
    """A `pyro.distributions` mixture of Gaussians, to sample, to score and to use as a prior.

    Its events have the shape of one component's mean: (parameters,) for a mixture over single
    models, (models, parameters) for one over tuples of models that belong together. The component
    is summed out in `log_prob`, which is differentiable, so that gradient-based inference works.

    Args:
        gaussians: Components of equal shape and dtype, at least one, of positive precision.
        log_weights: Log weights in nats, (components,), of any common offset; -inf drops one.

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
    shapes = {tuple(one.mean.shape) for one in gaussians}
    if len(shapes) > 1:
        raise ValueError(f"gaussians must have equal shapes, got {sorted(shapes)}")
    kept = [one for one, log in zip(gaussians, logs.tolist(), strict=True) if log > -torch.inf]
    for one in kept:
        one.require_proper()
    means = torch.stack([one.mean for one in kept])
    deviations = torch.stack([one.precision.rsqrt().expand(one.mean.shape) for one in kept])
    weights: Any = dist.Categorical(logits=logs[logs > -torch.inf].to(means))
    normals: Any = dist.Normal(means, deviations)
    components = normals.to_event(means.ndim - 1)
    return _mixture_class()(weights, components)


@functools.cache
def _mixture_class() -> Any:  # noqa: ANN401
    """Pyro's mixture with a support that its gradient-based samplers can read."""
    import pyro.distributions as dist
    from torch.distributions import constraints

    class GaussianMixture(dist.MixtureSameFamily):  # type: ignore[misc]
        """A mixture of Gaussians, supported everywhere."""

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
    """A Pyro program: parameters from a prior, targets from the network.

    Args:
        module: Network with outputs (samples, outputs), used in eval mode.
        prior: A `pyro.distributions` distribution over the flat parameter vector, events
            (parameters,), such as `to_pyro` and `mixture_to_pyro` give.
        likelihood: `categorical` (logits) or `gaussian` (means, unit variance).
        to_parameters: Map from the latent variable to the flat parameter vector; by default they
            are the same.

    Returns:
        Program of inputs and targets (None to sample them) with the latent variable "parameters"
        and the observed "targets"; it returns the outputs.
    """
    import pyro
    import pyro.distributions as dist

    def program(inputs: Tensor, targets: Tensor | None = None) -> Tensor:
        latent = pyro.sample(SITE, prior)
        vector = latent if to_parameters is None else to_parameters(latent)
        outputs = outputs_at(module, vector, inputs)
        if likelihood == "categorical":
            predicted: Any = dist.Categorical(logits=outputs)
        else:
            normals: Any = dist.Normal(outputs, 1.0)
            predicted = normals.to_event(1)
        with pyro.plate("samples", len(inputs)):
            pyro.sample("targets", predicted, obs=targets)
        return outputs

    return program
