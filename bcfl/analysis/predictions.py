"""Predictions of mixtures of cluster models, and how a model becomes a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.data.clients import View
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.hypotheses.posterior import Posterior
from posteriors import (
    DiagonalGaussian,
    Linearised,
    MonteCarlo,
    PlugIn,
    Predictive,
    predict_mixture,
)
from posteriors.gaussians.covariance import StructuredGaussian
from posteriors.predictive import ClosedForm, temper

PredictiveName = Literal["plug-in", "monte-carlo", "linearised", "probit", "bridge"]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the mixture of models that serves a client says of some inputs.

    The three uncertainties sum to the entropy.

    Attributes:
        mean: (samples, classes) predicted probabilities.
        entropy: (samples,) of the prediction, nats.
        data_uncertainty: (samples,) mean entropy of the single networks, nats.
        model_uncertainty: (samples,) mutual information between the label and the network, given
            the cluster's posterior, nats; 0 for `plug-in`, `probit` and `bridge`.
        association_uncertainty: (samples,) mutual information between the label and which
            posterior serves the client, nats.
        association: (clusters,) probability that the client is in a cluster, over the kept
            hypotheses, clusters named as in the leading one; uniform if it was never seen.
        ood_score: (samples,) how much better all clusters, or none, explain the inputs than the
            client's own, nats; the score to find inputs by that are not of the client's kind (see
            `FeatureDensity`). None where the run has no clients' data to compare with.
    """

    mean: NDArray[np.float64]
    entropy: NDArray[np.float64]
    data_uncertainty: NDArray[np.float64]
    model_uncertainty: NDArray[np.float64]
    association_uncertainty: NDArray[np.float64]
    association: NDArray[np.float64]
    ood_score: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"Prediction({len(self.mean)} samples, mean entropy {self.entropy.mean():.3f} nats)"


@dataclass(frozen=True)
class PredictionRule:
    """How the posterior over a cluster's model becomes class probabilities.

    Attributes:
        predictive: `plug-in` takes the softmax at the posterior mean; `monte-carlo` draws networks
            from the posterior; `linearised` draws from the network made linear in its parameters
            at the mean (Immer et al., 2021); `probit` and `bridge` average that network in closed
            form (see `posteriors.predictive.apply_link`), and count model uncertainty as data
            uncertainty.
        prior_precision: replaces the precision of the prior around the initial network, the
            curvature of the data kept; None leaves it. A precision of 1 makes predictions far too
            uncertain; see `Run.tuned`.
        temperature: each network's probabilities are raised to 1 / temperature and normalised.
        num_draws: draws from each posterior.
        seed: of the draws, so that predictions repeat.
    """

    predictive: PredictiveName = "plug-in"
    prior_precision: float | None = None
    temperature: float = 1.0
    num_draws: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        if self.predictive not in get_args(PredictiveName):
            raise ValueError(
                f"predictive must be one of {', '.join(get_args(PredictiveName))}, "
                f"got {self.predictive!r}"
            )
        precision = 1.0 if self.prior_precision is None else self.prior_precision
        for name, value in (("prior_precision", precision), ("temperature", self.temperature)):
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be positive and finite, got {value}")
        if self.num_draws < 1:
            raise ValueError(f"num_draws must be at least 1, got {self.num_draws}")

    @property
    def generator(self) -> torch.Generator:
        """A new source of the draws."""
        return torch.Generator().manual_seed(self.seed)

    def component(self, model: Model, posterior: Posterior) -> Predictive:
        """The predictive of one posterior; raises as `untempered` does."""
        return _Tempered(self.untempered(model, posterior), self.temperature)

    def untempered(self, model: Model, posterior: Posterior) -> Predictive:
        """The predictive of one posterior at temperature 1.

        Raises:
            ValueError: the posterior has one precision for all parameters, because no curvature
                ever entered it, and the predictive needs more than its mean.
        """
        mean = posterior.mean(model)
        module = _network(model, posterior, mean)
        if self.predictive == "plug-in":
            return PlugIn(module, mean)
        if not posterior.curved:
            raise ValueError(
                f"predictive {self.predictive!r} needs curvature, which has not entered the "
                "models of this run: use a bcfl method with its default curvature, or 'plug-in'"
            )
        gaussian = DiagonalGaussian(mean, self._precision(model, posterior))
        structured = StructuredGaussian.from_diagonal(gaussian)
        match self.predictive:
            case "monte-carlo":
                return MonteCarlo(module, structured)
            case "probit" | "bridge" as link:
                return ClosedForm(Linearised(module, structured, link))
            case _:
                return Linearised(module, structured)

    def _precision(self, model: Model, posterior: Posterior) -> Tensor:
        """(parameters,) precision with the prior's exchanged."""
        if self.prior_precision is None:
            return posterior.precision(model)
        parts = {
            block.name: torch.broadcast_to(
                (block.gaussian.precision - block.base.precision).clamp(min=0),
                block.gaussian.mean.shape,
            )
            for block in posterior.blocks
        }
        return model.join(parts) + self.prior_precision


@dataclass(frozen=True, eq=False)
class _Tempered:
    """A predictive each of whose members is tempered."""

    inner: Predictive
    temperature: float

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Tempered class probabilities, (samples, classes)."""
        return temper(self.inner.probabilities(inputs), self.temperature)

    def members(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Tempered class probabilities of each member, (members, samples, classes)."""
        return temper(self.inner.members(inputs, count, generator), self.temperature)


def _network(model: Model, posterior: Posterior, mean: Tensor) -> nn.Module:
    """A network of its own, with the posterior's running statistics."""
    workspace = FlatModule(model, mean.device, mean.dtype)
    return workspace.load(mean, posterior.buffers(model), training=False)


def fitting(model: Model, inputs: ArrayLike | Tensor, like: Tensor) -> Tensor:
    """Inputs as a tensor of the models' dtype and device.

    Raises:
        ValueError: the shape does not fit the model.
    """
    x = torch.as_tensor(inputs).to(like)
    if not model.reads(tuple(x.shape[1:])):
        wanted = ", ".join(map(str, model.input_shape))
        raise ValueError(f"inputs must have shape (samples, {wanted}), got {tuple(x.shape)}")
    return x


def labelled(
    model: Model, inputs: ArrayLike | Tensor, targets: ArrayLike | Tensor, like: Tensor
) -> View:
    """Samples with their classes as tensors on the models' device.

    Raises:
        ValueError: inputs or classes do not fit the model, or there are none.
    """
    x = fitting(model, inputs, like)
    y = torch.as_tensor(targets)
    whole = not y.is_floating_point() and y.shape == x.shape[:1] and len(y) > 0
    if not whole or y.min() < 0 or y.max() >= model.num_outputs:
        raise ValueError(
            f"adaptation must hold one class from 0 to {model.num_outputs - 1} per "
            f"sample, and at least one sample, got {len(x)} samples and classes of shape "
            f"{tuple(y.shape)} ({y.dtype})"
        )
    return View(x, y.to(x.device).long())


def predict(
    model: Model,
    mixture: Mapping[Posterior, float],
    association: NDArray[np.float64],
    inputs: Tensor,
    rule: PredictionRule,
) -> Prediction:
    """Predict with a mixture of posteriors.

    Args:
        model: the architecture, a classifier.
        mixture: probabilities of the posteriors.
        association: (clusters,) probabilities to be reported.
        inputs: (samples, *input_shape).
        rule: how a posterior becomes a prediction.
    """
    components: Sequence[Predictive] = [rule.component(model, one) for one in mixture]
    weights = torch.tensor(list(mixture.values()), dtype=torch.float64)
    found = predict_mixture(components, weights, inputs, rule.num_draws, rule.generator)
    split = found.uncertainty
    return Prediction(
        found.probabilities.cpu().numpy(),
        split.total.cpu().numpy(),
        split.data.cpu().numpy(),
        split.model.cpu().numpy(),
        split.association.cpu().numpy(),
        association,
    )
