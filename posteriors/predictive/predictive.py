"""What a posterior over network parameters says of new inputs: the protocol and its kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from posteriors.gaussians.covariance import StructuredGaussian, standard_normal
from posteriors.networks.functional import JACOBIAN_BYTES, jacobians, outputs_at
from posteriors.predictive.links import Link, apply_link


class Predictive(Protocol):
    """Class probabilities for new inputs, averaged over a posterior or member by member."""

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Predicted class probabilities, (samples, classes), float64."""
        ...

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Class probabilities under draws from the posterior, (members, samples, classes)."""
        ...


@dataclass(frozen=True, eq=False)
class OutputGaussian:
    """A Gaussian over the outputs for each sample.

    Attributes:
        mean: Means, (samples, outputs), float64.
        covariance: Covariances, (samples, outputs, outputs), float64, without observation noise.
    """

    mean: Tensor
    covariance: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw outputs, (count, samples, outputs), float64."""
        noise = standard_normal((count, *self.mean.shape), generator, self.mean)
        values, vectors = torch.linalg.eigh(self.covariance)
        factor = vectors * values.clamp(min=0).sqrt().unsqueeze(-2)
        return self.mean + torch.einsum("nij,snj->sni", factor, noise)


@dataclass(frozen=True, eq=False)
class PlugIn:
    """The softmax at one parameter vector, as if it were known.

    Attributes:
        module: Network with logits (samples, classes).
        mean: Parameters, (parameters,).
    """

    module: nn.Module
    mean: Tensor

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Predicted class probabilities, (samples, classes), float64."""
        with torch.no_grad():
            return outputs_at(self.module, self.mean, inputs).double().softmax(1)

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """The single member there is, (1, samples, classes), whatever the count."""
        return self.probabilities(inputs).unsqueeze(0)


@dataclass(frozen=True, eq=False)
class Draws:
    """The average softmax over given draws of the parameters, with equal weights.

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
        """Predicted class probabilities, (samples, classes), float64."""
        return self.outputs(inputs).softmax(2).mean(0)

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Class probabilities under `count` of the draws, at most all, without replacement."""
        order = torch.randperm(len(self.draws), generator=generator, device=generator.device)
        chosen = self.draws[order[:count].to(self.draws.device)]
        return _outputs_of(self.module, chosen, inputs).softmax(2)


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """The average softmax over draws of all parameters from a Gaussian.

    Attributes:
        module: Network with logits (samples, classes).
        posterior: Gaussian over the parameters.
        num_draws: Draws behind `probabilities`.
        seed: Seed of these draws, so that predictions repeat.
    """

    module: nn.Module
    posterior: StructuredGaussian
    num_draws: int = 64
    seed: int = 0

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Predicted class probabilities, (samples, classes), float64."""
        generator = torch.Generator().manual_seed(self.seed)
        return self.members(inputs, self.num_draws, generator).mean(0)

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Class probabilities under draws from the posterior, (count, samples, classes)."""
        draws = self.posterior.sample(count, generator)
        return _outputs_of(self.module, draws, inputs).softmax(2)


@dataclass(frozen=True, eq=False)
class Linearised:
    """The network made linear in its parameters at the mean (Immer et al., 2021).

    Attributes:
        module: Network with outputs (samples, outputs) whose samples don't mix.
        posterior: Gaussian over the parameters; known ones need no derivative.
        link: How logits become probabilities.
        chunk_bytes: Bound on the Jacobians held at once, in bytes.
    """

    module: nn.Module
    posterior: StructuredGaussian
    link: Link = "probit"
    chunk_bytes: int = JACOBIAN_BYTES

    def outputs(self, inputs: Tensor) -> OutputGaussian:
        """Gaussian over the outputs of each sample."""
        return outputs_of_all([self], inputs)[0]

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Predicted class probabilities, (samples, classes), float64."""
        outputs = self.outputs(inputs)
        return apply_link(self.link, outputs.mean, outputs.covariance)

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Class probabilities under draws of the linear model, (count, samples, classes)."""
        return self.outputs(inputs).sample(count, generator).softmax(2)


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A linearised network whose logits become probabilities by its link, without draws.

    It has no members to tell apart, so it cannot say how much of its entropy is due to not knowing
    the model.

    Attributes:
        linear: The linearised network.
    """

    linear: Linearised

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Predicted class probabilities, (samples, classes), float64."""
        return self.linear.probabilities(inputs)

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """The averaged probabilities as a single member, (1, samples, classes)."""
        return self.probabilities(inputs).unsqueeze(0)


def outputs_of_all(predictives: Sequence[Linearised], inputs: Tensor) -> list[OutputGaussian]:
    """Gaussians over the outputs for several covariances around one mean, in one pass.

    Args:
        predictives: Linear models of one network at one mean with the same uncertain parameters;
            only their covariances differ.
        inputs: Inputs, (samples, ...).
    """
    first = predictives[0]
    indices = first.posterior.covariance.indices
    mean, covariances, done = inputs.new_empty(0), inputs.new_empty(0), 0
    for outputs, jacobian in jacobians(
        first.module, first.posterior.mean, inputs, indices, first.chunk_bytes
    ):
        if done == 0:  # room for all at once: small results between large ones keep memory apart
            shape, width = (len(predictives), len(inputs)), outputs.shape[1]
            mean = outputs.new_empty((len(inputs), width), dtype=torch.float64)
            covariances = outputs.new_empty((*shape, width, width), dtype=torch.float64)
        end = done + len(outputs)
        mean[done:end] = outputs
        jacobian = jacobian.double()
        for found, one in zip(covariances, predictives, strict=True):
            found[done:end] = one.posterior.covariance.of_outputs(jacobian)
        done = end
    return [OutputGaussian(mean, found) for found in covariances]


def _outputs_of(module: nn.Module, draws: Tensor, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.stack([outputs_at(module, draw, inputs).double() for draw in draws])
