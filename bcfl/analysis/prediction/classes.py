"""Predicted classes and labels, for clients of a run and for those that were never seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch
from numpy.typing import ArrayLike

from bcfl.analysis.prediction.mixture import Prediction
from bcfl.analysis.prediction.mixture import predict as mixed
from bcfl.analysis.prediction.serving import (
    check_outputs,
    memberships_by,
    newcomer,
    rule_of,
    samples_for,
)
from bcfl.executors.arithmetic import computing
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.runtime import check_whole
from posteriors.torch_state import standard_switches

if TYPE_CHECKING:
    from bcfl.analysis.run import Run


@standard_switches()
def predict(  # noqa: D417 - a method of Run
    self: Run,
    client: str,
    inputs: ArrayLike | torch.Tensor,
    predictive: PredictiveName | PredictionRule | None = None,
    *,
    by: Literal["belief", "association"] = "belief",
    step: int | None = None,
) -> Prediction:
    """Predict with the mixture of cluster models under a client's posterior membership.

    Args:
        client: name of the client.
        inputs: (samples, *input_shape).
        predictive: how a cluster's posterior becomes a prediction, by name or as a rule with
            all its numbers, such as `bcfl.Run.tuned` gives; by default `bcfl.Run.rule`.
        by: whether the client is in clusters with the probabilities that are believed (see
            `bcfl.Hypothesis.membership`), or with those of the association by which it trains, as
            in the evaluations of the rounds.
        step: time step of the inputs, from 0, if it is known: `apd` and `fedweit` predict with
            what the client keeps of that step, all others with the models that serve now.

    Returns:
        A `bcfl.Prediction`: probabilities `mean` (samples, classes) as float64, their `entropy`
        (samples,) in nats with its three parts, and the client's `association` (clusters,).

    Raises:
        ValueError: the client or `by` is unknown, the inputs do not fit, `step` is below 0, the
            model predicts numbers, or the predictive needs a curvature that the method has
            not got.

    Warns:
        InputsWarning: inputs seem to be of another scale than those of training.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> prediction = run.predict("ann", [[1.0, 0.0], [-1.0, 0.0]])
        >>> prediction.mean.argmax(axis=1)
        array([1, 0])
        >>> prediction.association.round(2)
        array([0., 1.])
    """
    self.hypotheses.best.association.row(client)
    if step is not None:
        check_whole("step", step, 0)
    _check_classes(self, "predict", "see predict_values")
    rule = rule_of(self, predictive)
    membership = memberships_by(by)(self.hypotheses, client)
    mixture = None if step is None else membership.mixture_at(self.model, client, step)
    return _predicted(self, membership, inputs, rule, mixture)


@standard_switches()
def predict_new(  # noqa: D417 - a method of Run
    self: Run,
    inputs: ArrayLike | torch.Tensor,
    adaptation: tuple[ArrayLike | torch.Tensor, ArrayLike | torch.Tensor],
    predictive: PredictiveName | PredictionRule | None = None,
    *,
    temperature: float | Literal["mean"] = 1.0,
) -> Prediction:
    """Associate a client that was never seen by a few of its samples, then predict.

    Over all pairs of hypothesis and cluster, p is proportional to the hypothesis' weight,
    divided equally among its clusters, times exp(-summed loss of the samples / temperature).

    Args:
        inputs: (samples, *input_shape) to predict.
        adaptation: the client's own inputs (few, *input_shape) and classes (few,), or labels (few,
            labels). Where the clients were made with `classes`, so are these: labels of the list.
        predictive: as in `predict`.
        temperature: of the association, not of the predicted probabilities: 1 is Bayes' rule,
            `"mean"` divides the loss by the number of samples. No model was trained on the
            samples, and with 1 the pairs (`bcfl.Prediction.co_association`) were calibrated best.

    Returns:
        A `bcfl.Prediction`, as of `bcfl.Run.predict`. Its `association` (clusters,) is what the
        samples say, and its `co_association` (clients,) with whom the new client shares a cluster.

    Raises:
        ValueError: inputs, classes or temperature are not valid, the model
            predicts numbers, or the predictive needs a curvature that the method has not got.

    Warns:
        InputsWarning: inputs seem to be of another scale than those of training.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> few = ([[1.0, 0.0], [-1.0, 0.0], [2.0, 1.0]], [0, 1, 0])
        >>> prediction = run.predict_new([[1.5, 0.0]], few)
        >>> prediction.mean.argmax(axis=1)
        array([0])
        >>> prediction.co_association.round()
        array([0., 0., 1., 1.])
    """
    _check_classes(self, "predict_new", "see predict_new_values")
    rule = rule_of(self, predictive)
    membership = newcomer(self, adaptation, temperature)
    predicted = _predicted(self, membership, inputs, rule)
    return replace(predicted, co_association=membership.co_association)


def _check_classes(run: Run, name: str, instead: str) -> None:
    if run.model.likelihood == "gaussian":
        raise ValueError(
            f"{name} needs a model of classes or labels, got one of numbers; {instead}"
        )


def _predicted(
    run: Run,
    membership: Membership,
    inputs: ArrayLike | torch.Tensor,
    rule: PredictionRule,
    mixture: Mapping[Posterior, float] | None = None,
) -> Prediction:
    x = samples_for(run, inputs)
    models = membership.mixture if mixture is None else mixture
    with computing("full", x.device):
        try:
            predicted = mixed(run.model, models, membership.association, x, rule)
        except ValueError:
            check_outputs(run, models, x)
            raise
        density = run.feature_density
        if density is None:
            return predicted
        return replace(predicted, ood_score=density.ood_score(membership.association, x))
