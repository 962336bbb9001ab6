"""Posterior predictive distributions of networks: the protocol and its kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from posteriors.gaussians.covariance import StructuredGaussian, standard_normal
from posteriors.networks.functional import JACOBIAN_BYTES, jacobians, outputs_at
from posteriors.predictive.links import Link, apply_link, link_logits


class Predictive(Protocol):
    """Posterior predictive distribution of a classifier, and its individual members."""

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Class probabilities averaged over the posterior.

        Args:
            inputs: Inputs, (samples, ...).

        Returns:
            Probabilities, (samples, classes), float64.
        """
        ...

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Logits of the class probabilities under individual draws from the posterior.

        Args:
            inputs: Inputs, (samples, ...).
            count: Number of draws.
            generator: Source of randomness.

        Returns:
            Logits, (members, samples, classes), float64; kinds without draws, or with fewer of
            them, return fewer members.
        """
        ...


@dataclass(frozen=True, eq=False)
class OutputGaussian:
    """A Gaussian over the outputs of each sample.

    Attributes:
        mean: Means, (samples, outputs), float64.
        covariance: Covariances, (samples, outputs, outputs), float64, without observation noise.
    """

    mean: Tensor
    covariance: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw outputs.

        Args:
            count: Number of draws.
            generator: Source of randomness.

        Returns:
            Outputs, (count, samples, outputs), float64.
        """
        noise = standard_normal((count, *self.mean.shape), generator, self.mean)
        values, vectors = torch.linalg.eigh(self.covariance)
        factor = vectors * values.clamp(min=0).sqrt().unsqueeze(-2)
        return self.mean + torch.einsum("nij,snj->sni", factor, noise)


@dataclass(frozen=True, eq=False)
class PlugIn:
    """The softmax at a point estimate of the parameters.

    Attributes:
        module: Network with logits (samples, classes).
        mean: Parameters, (parameters,).
    """

    module: nn.Module
    mean: Tensor

    def probabilities(self, inputs: Tensor) -> Tensor:
        """See `posteriors.Predictive.probabilities`."""
        with torch.no_grad():
            return outputs_at(self.module, self.mean, inputs).double().softmax(1)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Those of the single member, (1, samples, classes).

        See `posteriors.Predictive.member_logits`.
        """
        return _outputs_of(self.module, self.mean.unsqueeze(0), inputs)


@dataclass(frozen=True, eq=False)
class Draws:
    """The mean softmax over given, equally weighted draws of the parameters.

    Attributes:
        module: Network with logits (samples, classes).
        draws: Parameter vectors, (draws, parameters).
    """

    module: nn.Module
    draws: Tensor

    def outputs(self, inputs: Tensor) -> Tensor:
        """Outputs under every draw, (draws, samples, outputs), float64."""
        return _outputs_of(self.module, self.draws, inputs)

    def probabilities(self, inputs: Tensor) -> Tensor:
        """See `posteriors.Predictive.probabilities`."""
        return self.outputs(inputs).softmax(2).mean(0)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Those of a random subset of at most `count` draws.

        See `posteriors.Predictive.member_logits`.
        """
        order = torch.randperm(len(self.draws), generator=generator, device=generator.device)
        chosen = self.draws[order[:count].to(self.draws.device)]
        return _outputs_of(self.module, chosen, inputs)


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """The mean softmax over draws of the parameters from a Gaussian.

    Attributes:
        module: Network with logits (samples, classes).
        posterior: Gaussian over the parameters.
        num_draws: Number of draws of `probabilities`.
        seed: Seed of these draws.
    """

    module: nn.Module
    posterior: StructuredGaussian
    num_draws: int = 64
    seed: int = 0

    def probabilities(self, inputs: Tensor) -> Tensor:
        """See `posteriors.Predictive.probabilities`."""
        generator = torch.Generator().manual_seed(self.seed)
        return self.member_logits(inputs, self.num_draws, generator).softmax(2).mean(0)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """See `posteriors.Predictive.member_logits`."""
        draws = self.posterior.sample(count, generator)
        return _outputs_of(self.module, draws, inputs)


@dataclass(frozen=True, eq=False)
class Linearised:
    """The network linearised in its parameters at the mean (Immer et al., 2021).

    Attributes:
        module: Network with outputs (samples, outputs), independent across samples.
        posterior: Gaussian over the parameters; known parameters are not differentiated.
        link: Approximation of the expected softmax.
        chunk_bytes: Upper bound of the memory of Jacobians held at once, bytes.
    """

    module: nn.Module
    posterior: StructuredGaussian
    link: Link = "probit"
    chunk_bytes: int = JACOBIAN_BYTES

    def outputs(self, inputs: Tensor) -> OutputGaussian:
        """Gaussian over the outputs of inputs (samples, ...)."""
        return outputs_of_all([self], inputs)[0]

    def probabilities(self, inputs: Tensor) -> Tensor:
        """See `posteriors.Predictive.probabilities`."""
        outputs = self.outputs(inputs)
        return apply_link(self.link, outputs.mean, outputs.covariance)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draws of the linearised outputs; see `posteriors.Predictive.member_logits`."""
        return self.outputs(inputs).sample(count, generator)


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A linearised network with class probabilities by its link function, without draws.

    It has a single member, so its entropy has no epistemic part.

    Attributes:
        linear: The linearised network.
    """

    linear: Linearised

    def probabilities(self, inputs: Tensor) -> Tensor:
        """See `posteriors.Predictive.probabilities`."""
        return self.linear.probabilities(inputs)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Those of the mean probabilities as a single member, (1, samples, classes).

        See `posteriors.Predictive.member_logits`.
        """
        outputs = self.linear.outputs(inputs)
        return link_logits(self.linear.link, outputs.mean, outputs.covariance).unsqueeze(0)


def outputs_of_all(predictives: Sequence[Linearised], inputs: Tensor) -> list[OutputGaussian]:
    """Gaussians over the outputs for several covariances with a common mean, in one pass.

    Args:
        predictives: Linearisations of one network at one mean with the same uncertain parameters
            and different covariances.
        inputs: Inputs, (samples, ...).

    Returns:
        Gaussian over the outputs for each predictive.
    """
    first = predictives[0]
    indices = first.posterior.covariance.indices
    mean, covariances, done = inputs.new_empty(0), inputs.new_empty(0), 0
    for outputs, jacobian in jacobians(
        first.module, first.posterior.mean, inputs, indices, first.chunk_bytes
    ):
        if done == 0:  # allocate all results at once, which avoids memory fragmentation
            shape, width = (len(predictives), len(inputs)), outputs.shape[1]
            mean = outputs.new_empty((len(inputs), width), dtype=torch.float64)
            covariances = outputs.new_empty((*shape, width, width), dtype=torch.float64)
        end = done + len(outputs)
        mean[done:end] = outputs
        jacobian = jacobian.double()
        for covariance, predictive in zip(covariances, predictives, strict=True):
            covariance[done:end] = predictive.posterior.covariance.of_outputs(jacobian)
        done = end
    return [OutputGaussian(mean, covariance) for covariance in covariances]


def _outputs_of(module: nn.Module, draws: Tensor, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.stack([outputs_at(module, draw, inputs).double() for draw in draws])
