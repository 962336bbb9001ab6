"""Quadratic expansions of the log-likelihood around models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakSet

import torch
from torch import Tensor, nn

from bcfl.architecture.evaluation import network_outputs
from bcfl.architecture.model import Model
from bcfl.data.view import View
from bcfl.protocol.checks import is_count, is_sum, tensor_trouble
from bcfl.protocol.statistics.sample_values import sample_losses
from bcfl.protocol.statistics.statistic import FLOAT_BYTES, NUMBER_BYTES, NetworkStatistic
from posteriors import diagonal_curvature
from posteriors.curvature.likelihood import negative_log_likelihood
from posteriors.networks.functional import own_copy

_CHECKED: WeakSet[nn.Module] = WeakSet()
"""Networks of executors whose curvature has been compared with autograd."""


@dataclass(frozen=True, eq=False)
class EvidenceSum:
    """Quadratic expansion of one client's log-likelihood at a model.

    Attributes:
        log_likelihood: summed over the view's samples, nats.
        gradient: (parameters,) of the log-likelihood.
        curvature: (parameters,) diagonal Gauss-Newton, summed.
        num_samples: samples in the view.
    """

    log_likelihood: float
    gradient: Tensor
    curvature: Tensor
    num_samples: int


@dataclass(frozen=True)
class Evidence(NetworkStatistic):
    """Log-likelihood, gradient and diagonal curvature: an `EvidenceSum` by model key."""

    name: ClassVar[str] = "evidence"

    def of_network(
        self, network: nn.Module, model: Model, view: View, num_samples: int
    ) -> EvidenceSum:
        """A subset is rescaled to all samples.

        See `bcfl.protocol.statistics.statistic.NetworkStatistic.of_network`.
        """
        scale = num_samples / len(view)
        values = network_outputs(network, view.inputs)
        losses = sample_losses(model.likelihood, values, view.targets)
        loss = negative_log_likelihood(
            network(own_copy(view.inputs)), view.targets, model.likelihood, reduction="sum"
        )
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        gradients = iter(torch.autograd.grad(loss, trained))
        gradient = torch.cat(
            [
                (next(gradients) if p.requires_grad else torch.zeros_like(p)).reshape(-1)
                for p in network.parameters()
            ]
        )
        curvature = diagonal_curvature(
            network,
            view.inputs,
            view.targets,
            likelihood=model.likelihood,
            check=network not in _CHECKED,
        )
        if bool(curvature.isfinite().all()):
            _CHECKED.add(network)
        return EvidenceSum(
            -scale * float(losses.sum()), -scale * gradient, scale * curvature, num_samples
        )

    def num_bytes(self, model: Model, num_models: int) -> int:
        """A number and two vectors for each model; see `bcfl.protocol.Statistic.num_bytes`."""
        return (NUMBER_BYTES + 2 * FLOAT_BYTES * model.layout.num_parameters) * num_models

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        shapes = [(model.layout.num_parameters,)]
        usable = (
            isinstance(part, EvidenceSum)
            and is_sum(part.log_likelihood)
            and is_count(part.num_samples)
            and not tensor_trouble(part.gradient, shapes)
            and not tensor_trouble(part.curvature, shapes)
            and bool((part.curvature >= 0).all())
        )
        return "" if usable else "an evidence that is not finite or has a wrong shape"
