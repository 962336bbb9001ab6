"""Local posteriors: the protocol of their methods, and what the methods share."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood
from posteriors.curvature.likelihood_curvature import LikelihoodCurvature
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior
from posteriors.networks.functional import eval_mode, flat_parameters, outputs_at, outputs_of
from posteriors.predictive import EachLabel, Linearised, MonteCarlo, Predictive

EvidenceKind = Literal["laplace", "lower bound", "importance"]


class UnsupportedFitError(ValueError):
    """A method does not support a prior or network; the message names both."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalFit:
    """The posterior of one data holder, in the form that can be fused and the one that predicts.

    Attributes:
        method: Name of the method.
        prior: The prior that was used, over the flat parameter vector.
        mean: Posterior mean or mode, (parameters,), in the dtype of the prior.
        curvature: Diagonal precision of the likelihood alone, at least 0, (parameters,); zero for
            parameters that the method holds as known.
        log_evidence: Log marginal likelihood of the data, nats.
        evidence_kind: `laplace` approximation, variational `lower bound`, or an `importance`
            sampling estimate.
        predictive: Predictions of this posterior under the same prior.
        structure: Curvature in the method's own structure; None where there is none.
        num_floored: Parameters whose posterior was wider than the prior, so that the curvature was
            raised to 0.
    """

    method: str
    prior: DiagonalGaussian
    mean: Tensor
    curvature: Tensor
    log_evidence: float
    evidence_kind: EvidenceKind
    predictive: Predictive
    structure: LikelihoodCurvature | None = None
    num_floored: int = 0

    def local_posterior(self, num_samples: int, weight: float = 1.0) -> LocalPosterior:
        """The form that `fuse` takes: mean and diagonal curvature, with the prior that was used.

        Args:
            num_samples: Training samples of the client.
            weight: Factor of the client's curvature in the fusion.
        """
        return LocalPosterior(
            mean=self.mean,
            curvature=self.curvature,
            used=self.prior,
            num_samples=num_samples,
            weight=weight,
        )

    def under_prior_precision(self, precision: float) -> Predictive:
        """Predictions had the prior precision been this one everywhere, without a new fit.

        Raises:
            UnsupportedFitError: If the posterior isn't a Gaussian (`nuts`).
            ValueError: If the precision isn't positive.
        """
        if self.structure is None or not isinstance(self.predictive, Linearised | MonteCarlo):
            raise UnsupportedFitError(f"{self.method} can't change its prior precision afterwards")
        if not precision > 0:
            raise ValueError(f"precision must be positive, got {precision}")
        prior = torch.full_like(self.structure.diagonal(), precision)
        posterior = dataclasses.replace(
            self.predictive.posterior, covariance=self.structure.under(prior)
        )
        return dataclasses.replace(self.predictive, posterior=posterior)


class LocalPosteriorFit(Protocol):
    """A method that turns data and a prior into a local posterior."""

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check, without fitting, that the method supports a network and a prior.

        Args:
            module: Network with outputs (samples, outputs).
            inputs: Inputs, (samples, ...), at least one sample.
            prior: Prior over the flat parameter vector, (parameters,).

        Raises:
            UnsupportedFitError: If it does not.
            ValueError: If the prior is improper or of another shape.
        """
        ...

    def fit(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior: DiagonalGaussian,
        *,
        seed: int = 0,
    ) -> LocalFit:
        """Fit a posterior; neither the module nor any global random state is changed.

        Args:
            module: Network with outputs (samples, outputs). Laplace methods take its parameters
                as the posterior's mode, the others start from them.
            inputs: Inputs, (samples, ...), at least one sample.
            targets: Class indices (samples,), or values or labels (samples, outputs).
            prior: Proper prior over the flat parameter vector, (parameters,).
            seed: Seed of all randomness in the method.

        Raises:
            UnsupportedFitError: If the method does not support this prior or network.
            ValueError: If shapes don't fit.
        """
        ...


def check_prior(module: nn.Module, prior: DiagonalGaussian) -> None:
    """Check that a prior is proper and over the module's parameters.

    Args:
        module: Network.
        prior: Gaussian over its parameters.

    Raises:
        ValueError: If it has another shape or is improper.
    """
    expected = (sum(value.numel() for value in module.parameters()),)
    if prior.mean.shape != expected:
        raise ValueError(
            f"prior must have the shape {expected} of the module's parameters, "
            f"got {tuple(prior.mean.shape)}"
        )
    prior.require_proper()


def copied(module: nn.Module, inputs: Tensor) -> nn.Module:
    """A copy of a network that is known to compute what the network computes.

    Copies of a function that refers to the network itself still refer to the original.

    Args:
        module: Network.
        inputs: Inputs, (samples, ...), one of which is tried.

    Raises:
        UnsupportedFitError: If outputs of network and copy differ at other parameters.
    """
    twin = copy.deepcopy(module)
    elsewhere = 1.5 * flat_parameters(module) + 0.1
    with torch.no_grad():
        of_network, of_twin = (outputs_at(one, elsewhere, inputs[:1]) for one in (module, twin))
    if not torch.allclose(of_network, of_twin, equal_nan=True):
        raise UnsupportedFitError(
            "a copy of the network does not compute what the network does: a forward or a hook "
            "may refer to the network itself, or draw random numbers in evaluation mode"
        )
    return twin


def of_likelihood(logits: Predictive, likelihood: Likelihood) -> Predictive:
    """The predictive of what a network's outputs are parameters of.

    Args:
        logits: Predictive of the outputs, as if they were logits of classes.
        likelihood: Of the network.
    """
    return EachLabel(logits) if likelihood == "bernoulli" else logits


def some_targets(module: nn.Module, inputs: Tensor, likelihood: Likelihood) -> Tensor:
    """Targets of the right type, for curvatures that do not depend on targets.

    Args:
        module: Network.
        inputs: (samples, *input shape).
        likelihood: Of its outputs.
    """
    with eval_mode(module), torch.no_grad():
        outputs = outputs_of(module, inputs)
    match likelihood:
        case "categorical":
            return outputs.argmax(1)
        case "gaussian":
            return outputs
        case "bernoulli":
            return (outputs > 0).to(outputs)


def laplace_log_evidence(
    log_likelihood: float, mode: Tensor, prior: DiagonalGaussian, structure: LikelihoodCurvature
) -> float:
    """Log evidence of a Laplace approximation in the uncertain parameters, float64 nats.

    Log likelihood at the mode - (mode - prior mean)² / (2 x prior variance) - half the log of the
    ratio of determinants (MacKay, 1992b). Parameters held as known don't enter the prior's terms.

    Args:
        log_likelihood: Summed log likelihood at the mode, nats.
        mode: Posterior mode, (parameters,).
        prior: Prior over all parameters.
        structure: Curvature of the log likelihood at the mode.
    """
    places = slice(None) if structure.indices is None else structure.indices
    precision = prior.precision.expand(prior.mean.shape)[places].double()
    deviation = (mode.double() - prior.mean.double())[places]
    return (
        log_likelihood
        - 0.5 * float((precision * deviation.square()).sum())
        - 0.5 * structure.log_determinant_ratio(precision)
    )


def uncertain_precision(prior: DiagonalGaussian, structure: LikelihoodCurvature) -> Tensor:
    """Prior precisions of a structure's uncertain parameters, (uncertain,), float64.

    Args:
        prior: Gaussian over all parameters.
        structure: Curvature over the uncertain parameters.
    """
    precision = prior.precision.double().expand(prior.mean.shape)
    return precision if structure.indices is None else precision[structure.indices]


def scatter_diagonal(structure: LikelihoodCurvature, prior: DiagonalGaussian) -> Tensor:
    """Diagonal curvature of all parameters, (parameters,): 0 for those that are not uncertain.

    Args:
        structure: Curvature over the uncertain parameters.
        prior: Gaussian over all parameters.
    """
    values = structure.diagonal().to(prior.mean)
    if structure.indices is None:
        return values
    return torch.zeros_like(prior.mean).index_put((structure.indices,), values)


def mode_of(module: nn.Module, prior: DiagonalGaussian) -> Tensor:
    """The module's parameters, (parameters,), in the dtype and on the device of the prior.

    Args:
        module: Network at its mode.
        prior: Gaussian whose dtype and device are taken.
    """
    return flat_parameters(module).to(prior.mean)
