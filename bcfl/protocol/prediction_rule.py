"""The predictive distribution of a posterior over networks, by name and hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from bcfl.architecture.evaluation import network_outputs
from bcfl.architecture.model import Model
from bcfl.hypotheses.posterior import Posterior
from bcfl.runtime import check_whole, is_real, is_whole
from posteriors import DiagonalGaussian, Linearised, MonteCarlo, PlugIn, Predictive
from posteriors.gaussians.covariance import StructuredGaussian
from posteriors.predictive import ClosedForm, EachLabel, temper
from posteriors.predictive.predictive import outputs_of_all

PredictiveName = Literal["plug-in", "monte-carlo", "linearised", "probit", "bridge"]


@dataclass(frozen=True, kw_only=True)
class PredictionRule:
    """How the posterior over a cluster's model becomes class probabilities.

    Attributes:
        predictive: `plug-in` takes the softmax, or the sigmoid of labels, at the posterior mean;
            `monte-carlo` draws networks from the posterior; `linearised` draws from the network
            made linear in its parameters at the mean (Immer et al., 2021); `probit` and `bridge`
            average that network in closed form (see `posteriors.predictive.apply_link`), and count
            model uncertainty as data uncertainty.
        prior_precision: replaces the precision of the prior around the initial network, the
            curvature of the data kept; None leaves it. A precision of 1 makes predictions far too
            uncertain; see `bcfl.Run.tuned`.
        temperature: each network's probabilities are raised to 1 / temperature and normalised; of
            numbers, whose density is a Gaussian of unit variance, it is so the noise variance.
        num_draws: draws from each posterior.
        seed: of the draws, so that predictions repeat.

    Raises:
        ValueError: the predictive is unknown, or a number is out of range.
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
            if not (is_real(value) and 0 < value < float("inf")):
                raise ValueError(f"{name} must be positive and finite, got {value!r}")
        check_whole("num_draws", self.num_draws)
        if not is_whole(self.seed):
            raise ValueError(f"seed must be a whole number, got {self.seed!r}")

    @property
    def generator(self) -> torch.Generator:
        """A new source of the draws."""
        return torch.Generator().manual_seed(self.seed)

    def check(self, posteriors: Iterable[Posterior]) -> None:
        """Check that the posteriors of a mixture hold what the predictive needs.

        Those of clusters that no client has trained yet have one precision for all parameters, that
        of their prior.

        Raises:
            ValueError: all of them have, because no curvature ever entered them, and the predictive
                needs more than their means.
        """
        if self.predictive != "plug-in" and not any(one.curved for one in posteriors):
            raise ValueError(
                f"predictive {self.predictive!r} needs curvature, which has not entered the "
                "models of this run: use a bcfl method with its default curvature, or 'plug-in'"
            )

    def component(self, model: Model, posterior: Posterior) -> Predictive:
        """The predictive of one posterior, at the temperature of the rule.

        Args:
            model: architecture.
            posterior: over its parameters.
        """
        return _Tempered(self.untempered(model, posterior), self.temperature)

    def untempered(self, model: Model, posterior: Posterior) -> Predictive:
        """The predictive of one posterior at temperature 1.

        See `posteriors.predictive.EachLabel` where it is of labels.

        Args:
            model: architecture.
            posterior: over its parameters.
        """
        logits = self.of_logits(model, posterior)
        return EachLabel(logits) if model.likelihood == "bernoulli" else logits

    def of_logits(self, model: Model, posterior: Posterior) -> Predictive:
        """The predictive of one posterior, whose members' logits are those of classes or labels.

        Args:
            model: architecture.
            posterior: over its parameters.

        Raises:
            ValueError: `bridge`, which is of classes, is asked to predict labels.
        """
        if model.likelihood == "bernoulli" and self.predictive == "bridge":
            raise ValueError("predictive 'bridge' is of classes, not of labels; use 'probit'")
        mean = posterior.mean(model)
        module = model.network(mean, posterior.buffers(model))
        if self.predictive == "plug-in":
            return PlugIn(module, mean)
        gaussian = DiagonalGaussian(mean, self._precision(model, posterior))
        structured = StructuredGaussian.from_diagonal(gaussian)
        match self.predictive:
            case "monte-carlo":
                return MonteCarlo(module, structured)
            case "probit" | "bridge" as link:
                return ClosedForm(Linearised(module, structured, link))
            case _:
                return Linearised(module, structured)

    def moments(
        self, model: Model, mixture: Mapping[Posterior, float], inputs: Tensor
    ) -> ValueMoments:
        """Moments of the outputs of a model of numbers.

        See `bcfl.protocol.prediction_rule.moments_of_all`.
        """
        (found,) = moments_of_all([self], model, mixture, inputs)
        return found

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
class ValueMoments:
    """Moments of the outputs of a model of numbers under a mixture of posteriors, float64.

    Attributes:
        mean: (samples, outputs) of all.
        model_variance: (samples, outputs) mean of the variances under the posteriors.
        association_variance: (samples, outputs) variance of the means under the posteriors.
    """

    mean: Tensor
    model_variance: Tensor
    association_variance: Tensor


def moments_of_all(
    rules: Sequence[PredictionRule],
    model: Model,
    mixture: Mapping[Posterior, float],
    inputs: Tensor,
) -> list[ValueMoments]:
    """Moments of the outputs of a model of numbers, without its noise, by rule.

    Args:
        rules: of one predictive each; linear ones share their Jacobians.
        model: architecture.
        mixture: probabilities of the posteriors.
        inputs: (samples, *input_shape).

    Raises:
        ValueError: a predictive is of classes or labels.
    """
    with torch.no_grad():
        by_posterior = [_outputs(rules, model, posterior, inputs) for posterior in mixture]
    weights = torch.tensor(list(mixture.values()), dtype=torch.float64).reshape(-1, 1, 1)
    moments = []
    for parts in zip(*by_posterior, strict=True):
        outputs, variances = (torch.stack(part) for part in zip(*parts, strict=True))
        weights = weights.to(outputs)
        mean = (weights * outputs).sum(0)
        within, between = (weights * variances).sum(0), (weights * (outputs - mean) ** 2).sum(0)
        moments.append(ValueMoments(mean, within, between))
    return moments


def _outputs(
    rules: Sequence[PredictionRule], model: Model, posterior: Posterior, inputs: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """(samples, outputs) mean and variance of the outputs under one posterior, by rule."""
    if rules[0].predictive == "plug-in":
        network = model.network(posterior.mean(model), posterior.buffers(model))
        outputs = network_outputs(network, inputs).double()
        return [(outputs, torch.zeros_like(outputs))] * len(rules)
    predictives = [rule.of_logits(model, posterior) for rule in rules]
    linear = [predictive for predictive in predictives if isinstance(predictive, Linearised)]
    if len(linear) == len(predictives):
        gaussians = outputs_of_all(linear, inputs)
        return [
            (f.mean.double(), f.covariance.diagonal(dim1=1, dim2=2).double()) for f in gaussians
        ]
    if any(isinstance(predictive, ClosedForm) for predictive in predictives):
        raise ValueError(f"predictive {rules[0].predictive!r} is of classes, not of numbers")
    drawn = [
        predictive.member_logits(inputs, rule.num_draws, rule.generator)
        for rule, predictive in zip(rules, predictives, strict=True)
    ]
    return [(d.mean(0).double(), d.var(0, correction=0).double()) for d in drawn]


@dataclass(frozen=True, eq=False)
class _Tempered:
    """A predictive each of whose members is tempered."""

    inner: Predictive
    temperature: float

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Tempered class probabilities, (samples, ..., classes)."""
        return temper(self.inner.probabilities(inputs).log(), self.temperature)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Logits of each member divided by the temperature, (members, samples, ..., classes)."""
        return self.inner.member_logits(inputs, count, generator) / self.temperature
