"""Predicted numbers, for clients of a run and for those that were never seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import e, nan, pi, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy
import torch
from numpy.typing import ArrayLike, NDArray

from bcfl.analysis.prediction.serving import (
    check_outputs,
    memberships_by,
    newcomer,
    rule_of,
    samples_for,
)
from bcfl.executors.arithmetic import computing
from bcfl.hypotheses.membership import Membership
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.protocol.statistics.regression import LEVELS, coverage_name
from bcfl.runtime.suggestions import counted
from posteriors.torch_state import standard_switches

if TYPE_CHECKING:
    from bcfl.analysis.run import Run


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuePrediction:
    """The prediction of numbers by the mixture of models that serves a client.

    Attributes:
        mean: (samples, outputs) predicted values.
        noise_variance: of the likelihood, in the square of the targets' unit: the temperature of
            the rule.
        model_variance: (samples, outputs) mean over the models of the variance of their outputs
            under the cluster's posterior; 0 for `plug-in`.
        association_variance: (samples, outputs) variance of the models' means over which of them
            serves the client.
        association: (clusters,) probability that the client is in a cluster, see
            `bcfl.analysis.Prediction`.
        ood_score: (samples,) out-of-distribution score, see `bcfl.analysis.Prediction`.
        co_association: (clients,) probability that a new client shares a cluster with each client
            of the federation, in the order of `bcfl.Run.clients`; None for these themselves.
    """

    mean: NDArray[np.float64]
    noise_variance: float
    model_variance: NDArray[np.float64]
    association_variance: NDArray[np.float64]
    association: NDArray[np.float64]
    ood_score: NDArray[np.float64] | None = None
    co_association: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        """Number of samples and the mean standard deviation of a value."""
        known = ""
        if len(self.mean):
            known = f", mean standard deviation {np.sqrt(self.variance).mean():.3g}"
        return f"ValuePrediction({counted(len(self.mean), 'sample')}{known})"

    @property
    def variance(self) -> NDArray[np.float64]:
        """(samples, outputs) variance of the prediction."""
        return self.noise_variance + self.model_variance + self.association_variance

    @property
    def entropy(self) -> NDArray[np.float64]:
        """(samples,) differential entropy of the prediction as a Gaussian, summed over outputs."""
        entropy: NDArray[np.float64] = (0.5 * np.log(2 * pi * e * self.variance)).sum(axis=1)
        return entropy

    @property
    def epistemic(self) -> NDArray[np.float64]:
        """(samples,) nats of `entropy` beyond that of the noise alone."""
        parts: NDArray[np.float64] = (0.5 * np.log(self.variance / self.noise_variance)).sum(axis=1)
        return parts


@standard_switches()
def predict_values(  # noqa: D417 - a method of Run
    self: Run,
    client: str,
    inputs: ArrayLike | torch.Tensor,
    predictive: PredictiveName | PredictionRule | None = None,
    *,
    by: Literal["belief", "association"] = "belief",
) -> ValuePrediction:
    """Predict numbers with the mixture of cluster models under a client's posterior membership.

    Each model predicts a Gaussian around its output, whose variance is the temperature of the rule:
    1, unless it was chosen or tuned (`bcfl.Run.tuned`).

    Args:
        client: name of the client.
        inputs: (samples, *input_shape).
        predictive: how a cluster's posterior becomes a prediction, by name or as a rule:
            `plug-in` knows the network, `linearised` and `monte-carlo` add the variance of its
            outputs under the posterior. By default `bcfl.Run.rule`: `plug-in`, with the noise
            variance tuned where clients set training samples aside.
        by: as in `bcfl.Run.predict`.

    Returns:
        A `bcfl.analysis.ValuePrediction`: `mean` (samples, outputs) as float64 in the targets'
        unit, `variance` in its square with three parts, and `association` (clusters,).

    Raises:
        ValueError: the client or `by` is unknown, the inputs do not fit, the model predicts classes
            or labels, or the predictive is of these, or needs a curvature that there is not.

    Warns:
        InputsWarning: inputs seem to be of another scale than those of training.

    Example:
        With `signs` and `method` of the example of `bcfl.Federation`, and numbers as targets:

        >>> x = np.random.default_rng(0).normal(size=(40, 2))
        >>> clients = [
        ...     bcfl.ClientData.from_arrays(name, (x, sign * x[:, 0]))
        ...     for name, sign in signs.items()
        ... ]
        >>> run = bcfl.Federation(clients, lambda: nn.Linear(2, 1), method, seed=0).run(rounds=5)
        >>> prediction = run.predict_values("ann", [[1.0, 0.0]])
        >>> prediction.mean.round(), prediction.variance.round()
        (array([[1.]]), array([[1.]]))
    """
    _check_numbers(self, "predict_values", "predict")
    memberships = memberships_by(by)
    self.hypotheses.best.association.row(client)
    rule = rule_of(self, predictive)
    return _predicted(self, memberships(self.hypotheses, client), inputs, rule)


@standard_switches()
def predict_new_values(  # noqa: D417 - a method of Run
    self: Run,
    inputs: ArrayLike | torch.Tensor,
    adaptation: tuple[ArrayLike | torch.Tensor, ArrayLike | torch.Tensor],
    predictive: PredictiveName | PredictionRule | None = None,
    *,
    temperature: float | Literal["mean"] | None = None,
) -> ValuePrediction:
    """Associate a client that was never seen by a few of its samples, then predict numbers.

    As `bcfl.Run.predict_new`: over all pairs of hypothesis and cluster, p is proportional to the
    hypothesis' weight, divided equally among its clusters, times exp(-summed loss of the samples /
    temperature). The loss of a sample is half the squared distance of target and output, summed
    over outputs.

    Args:
        inputs: (samples, *input_shape) to predict.
        adaptation: the client's own inputs (few, *input_shape) and numbers (few, outputs), of one
            output also (few,).
        predictive: as in `bcfl.Run.predict_values`.
        temperature: of the association, in the square of the targets' unit. By default that of the
            rule, so that the samples have the noise variance that the prediction has, which is
            Bayes' rule; `"mean"` is the number of samples.

    Returns:
        A `bcfl.analysis.ValuePrediction`, as of `bcfl.Run.predict_values`. Its `association`
        (clusters,) is what the samples say, and its `co_association` (clients,) with whom the new
        client shares a cluster.

    Raises:
        ValueError: inputs, numbers or temperature are not valid, the model predicts classes or
            labels, or the predictive is of these, or needs a curvature that there is not.

    Warns:
        InputsWarning: inputs seem to be of another scale than those of training.

    Example:
        With `signs` and `method` of the example of `bcfl.Federation`, and numbers as targets:

        >>> x = np.random.default_rng(0).normal(size=(40, 2))
        >>> clients = [
        ...     bcfl.ClientData.from_arrays(name, (x, sign * x[:, 0]))
        ...     for name, sign in signs.items()
        ... ]
        >>> run = bcfl.Federation(clients, lambda: nn.Linear(2, 1), method, seed=0).run(rounds=5)
        >>> few = ([[1.0, 0.0], [-2.0, 1.0]], [-1.0, 2.0])
        >>> prediction = run.predict_new_values([[1.0, 0.0]], few, temperature=0.1)
        >>> prediction.mean.round()
        array([[-1.]])
        >>> prediction.co_association.round()
        array([0., 0., 1., 1.])
    """
    _check_numbers(self, "predict_new_values", "predict_new")
    rule = rule_of(self, predictive)
    divisor = rule.temperature if temperature is None else temperature
    membership = newcomer(self, adaptation, divisor)
    predicted = _predicted(self, membership, inputs, rule)
    return replace(predicted, co_association=membership.co_association)


def _check_numbers(run: Run, name: str, instead: str) -> None:
    if run.model.likelihood != "gaussian":
        found = "classes" if run.model.likelihood == "categorical" else "labels"
        raise ValueError(f"{name} needs a model of numbers, got one of {found}; see {instead}")


def _predicted(
    run: Run, membership: Membership, inputs: ArrayLike | torch.Tensor, rule: PredictionRule
) -> ValuePrediction:
    x = samples_for(run, inputs)
    rule.check(membership.mixture)
    with computing("full", x.device):
        moments = rule.moments(run.model, membership.mixture, x)
        if not moments.mean.isfinite().all():
            check_outputs(run, membership.mixture, x)
        density = run.feature_density
        ood_score = None if density is None else density.ood_score(membership.association, x)
    return ValuePrediction(
        mean=moments.mean.cpu().numpy(),
        noise_variance=rule.temperature,
        model_variance=moments.model_variance.cpu().numpy(),
        association_variance=moments.association_variance.cpu().numpy(),
        association=membership.association,
        ood_score=ood_score,
    )


def score_values(
    mean: NDArray[np.float64], variance: NDArray[np.float64], targets: NDArray[np.float64]
) -> dict[str, float]:
    """Scores of Gaussian predictions of numbers, means over values; NaN without any.

    Root mean squared error (`rmse`), negative log-likelihood (`nll`, nats per value), continuous
    ranked probability score (`crps`, in the unit of the values), the shares of values inside the
    central intervals (`coverage_90` for that of 90 %), the mean distance of these shares from their
    levels (`coverage_error`), and how narrow predictions are: their mean standard deviation
    (`sharpness`).

    Args:
        mean: (samples, outputs) of the predictions.
        variance: (samples, outputs) of the predictions, positive.
        targets: (samples, outputs) true values.

    Returns:
        Numbers by the names above.

    References:
        Gneiting, Raftery (2007), "Strictly proper scoring rules, prediction, and estimation",
        equation 21.
    """
    if not targets.size:
        names = ("rmse", "nll", "crps", *map(coverage_name, LEVELS), "coverage_error", "sharpness")
        return dict.fromkeys(names, nan)
    deviation = np.sqrt(variance)
    z = (targets - mean) / deviation
    density = np.exp(-0.5 * z**2) / sqrt(2 * pi)
    crps = deviation * (z * (2 * scipy.special.ndtr(z) - 1) + 2 * density - 1 / sqrt(pi))
    coverage = {
        level: float((np.abs(scipy.special.ndtr(z) - 0.5) <= level / 2).mean()) for level in LEVELS
    }
    return {
        "rmse": float(np.sqrt(((targets - mean) ** 2).mean())),
        "nll": float((0.5 * z**2 + np.log(deviation) + 0.5 * np.log(2 * pi)).mean()),
        "crps": float(crps.mean()),
        **{coverage_name(level): share for level, share in coverage.items()},
        "coverage_error": float(np.mean([abs(s - level) for level, s in coverage.items()])),
        "sharpness": float(deviation.mean()),
    }
