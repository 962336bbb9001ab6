"""Predictions of mixtures of cluster models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.arrays import class_numbers, inputs_tensor, targets_tensor
from bcfl.data.frames import without_frame
from bcfl.data.view import View
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule
from bcfl.runtime.numbers import check_finite
from bcfl.runtime.suggestions import counted
from posteriors import Predictive, predict_mixture


@dataclass(frozen=True, eq=False, kw_only=True)
class Prediction:
    """The prediction of the mixture of models that serves a client.

    The three uncertainties sum to the entropy. Of a model of labels, of which any number may be
    present, they are those of each label by itself, (samples, labels).

    Attributes:
        mean: (samples, classes) predicted probabilities; of labels, (samples, labels) that each is
            present.
        entropy: (samples,) of the prediction, nats.
        data_uncertainty: (samples,) mean entropy of the single networks, nats.
        model_uncertainty: (samples,) mutual information between the label and the network, given
            the cluster's posterior, nats; 0 for `plug-in`, `probit` and `bridge`.
        association_uncertainty: (samples,) mutual information between the label and which
            posterior serves the client, nats.
        association: (clusters,) probability that the client is in a cluster, over the kept
            hypotheses, clusters named as in the leading one; uniform if it was never seen.
        ood_score: (samples,) how much better all clusters, or none, explain the inputs than the
            client's own, nats: an out-of-distribution score (see
            `bcfl.analysis.prediction.ood.FeatureDensity`). None where the run has no executor.
        co_association: (clients,) probability that a new client shares a cluster with each client
            of the federation, in the order of `bcfl.Run.clients`; None for these themselves, see
            `bcfl.Run.co_association`.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> prediction = run.predict("ann", [[1.0, 0.0], [-1.0, 0.0]])
        >>> prediction.mean.shape, prediction.entropy.shape
        ((2, 2), (2,))
        >>> parts = prediction.data_uncertainty + prediction.model_uncertainty
        >>> bool(np.allclose(parts + prediction.association_uncertainty, prediction.entropy))
        True
    """

    mean: NDArray[np.float64]
    entropy: NDArray[np.float64]
    data_uncertainty: NDArray[np.float64]
    model_uncertainty: NDArray[np.float64]
    association_uncertainty: NDArray[np.float64]
    association: NDArray[np.float64]
    ood_score: NDArray[np.float64] | None = None
    co_association: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        mean = f", mean entropy {self.entropy.mean():.3f} nats" if len(self.mean) else ""
        return f"Prediction({counted(len(self.mean), 'sample')}{mean})"


AS_NUMBERED = (
    "; number the labels as those of the clients were, by the list of all classes: "
    "`[classes.index(label) for label in labels]`. Of clients that are made with "
    "ClientData.from_arrays(..., classes=classes), labels are taken as they are"
)
"""What to do about text in place of classes, of a client that was never seen."""


def fitting(model: Model, inputs: ArrayLike | Tensor, like: Tensor) -> Tensor:
    """A copy of inputs as a tensor of the models' dtype and device.

    Args:
        model: architecture that reads the inputs.
        inputs: (samples, *input shape).
        like: tensor of the models' dtype and on their device.

    Raises:
        TypeError: the inputs are masked, complex or no numbers.
        ValueError: the shape does not fit the model, or an input is not finite.
    """
    given = inputs_tensor(without_frame(inputs))
    x = given.to(like)
    if not model.reads(tuple(x.shape[1:])):
        shape = ", ".join(map(str, model.input_shape))
        alone = "; one sample alone is `inputs[None]`" * model.reads(tuple(x.shape))
        raise ValueError(f"inputs must have shape (samples, {shape}), got {tuple(x.shape)}{alone}")
    if not bool(torch.isfinite(x).all()):
        check_finite(given.double().numpy(), "inputs")
        raise ValueError(f"inputs must be finite in {x.dtype}, got a larger number")
    return x


def labelled(
    model: Model,
    inputs: ArrayLike | Tensor,
    targets: ArrayLike | Tensor,
    like: Tensor,
    classes: Sequence[Any] = (),
) -> View:
    """Samples with their classes, labels or numbers as tensors on the models' device.

    Args:
        model: architecture that reads the inputs.
        inputs: (samples, *input shape).
        targets: (samples,) classes, integers, (samples, labels) of 0 and 1, or (samples, outputs)
            numbers, of one output also (samples,).
        like: tensor of the models' dtype and on their device.
        classes: labels of the classes, where clients have such; the targets may be labels then.

    Raises:
        TypeError: inputs or targets are masked, complex or no numbers.
        ValueError: inputs or targets do not fit the model, or there are none.
    """
    x = fitting(model, inputs, like)
    if model.likelihood == "gaussian":
        y = targets_tensor(targets, of_text="").to(x)
        return View(x, _values(y, model.num_outputs, len(x)))
    y = _class_targets(targets, classes)
    if model.likelihood == "bernoulli":
        return View(x, _labels(y, model.num_outputs, len(x)).to(x))
    whole = not y.is_floating_point() and y.shape == x.shape[:1] and len(y) > 0
    if not whole or y.min() < 0 or y.max() >= model.num_outputs:
        raise ValueError(
            f"targets must hold one class from 0 to {model.num_outputs - 1} per "
            f"sample, and at least one sample, got {len(x)} samples and classes of shape "
            f"{tuple(y.shape)} ({y.dtype}){_between(y)}{_as_whole(y)}"
        )
    return View(x, y.to(x.device).long())


def _class_targets(targets: ArrayLike | Tensor, classes: Sequence[Any]) -> Tensor:
    """Classes as numbers. Where their labels are no numbers, numbers stand for themselves."""
    if not classes:
        return targets_tensor(targets, of_text=AS_NUMBERED)
    given = targets.detach().cpu().numpy() if isinstance(targets, Tensor) else np.asarray(targets)
    are_text = not any(isinstance(one, Number) for one in classes)
    if are_text and given.dtype.kind in "biuf":
        return targets_tensor(targets)
    return class_numbers(targets, classes)


def _as_whole(targets: Tensor) -> str:
    floats = targets.is_floating_point() and bool((targets == targets.round()).all())
    floats = floats and len(targets) > 0
    return "; classes are whole numbers: `numpy.asarray(targets, int)`" * floats


def _between(values: Tensor) -> str:
    return f", from {values.min().item()} to {values.max().item()}" if values.numel() else ""


def _values(targets: Tensor, outputs: int, samples: int) -> Tensor:
    """(samples, outputs) numbers."""
    shapes = [(samples, outputs), *([(samples,)] if outputs == 1 else [])]
    if tuple(targets.shape) not in shapes or not samples or not bool(targets.isfinite().all()):
        raise ValueError(
            f"targets must hold {counted(outputs, 'finite number')} per sample, and at least "
            f"one sample, got {samples} samples and targets of shape {tuple(targets.shape)}"
            + ("" if bool(targets.isfinite().all()) else " with NaN or inf")
        )
    return targets.reshape(samples, outputs)


def _labels(targets: Tensor, labels: int, samples: int) -> Tensor:
    fits = targets.shape == (samples, labels) and samples > 0
    if not fits or not bool(((targets == 0) | (targets == 1)).all()):
        raise ValueError(
            f"targets must hold {labels} labels of 0 or 1 per sample, and at least one sample, "
            f"got {samples} samples and labels of shape {tuple(targets.shape)}"
        )
    return targets


def predict(
    model: Model,
    mixture: Mapping[Posterior, float],
    association: NDArray[np.float64],
    inputs: Tensor,
    rule: PredictionRule,
) -> Prediction:
    """Predict with a mixture of posteriors.

    Args:
        model: the architecture, of classes or labels.
        mixture: probabilities of the posteriors.
        association: (clusters,) probabilities to be reported.
        inputs: (samples, *input_shape).
        rule: how a posterior becomes a prediction.

    Raises:
        ValueError: the predictive needs curvature that the posteriors lack.
    """
    rule.check(mixture)
    components: Sequence[Predictive] = [rule.component(model, posterior) for posterior in mixture]
    weights = torch.tensor(list(mixture.values()), dtype=torch.float64)
    predicted = predict_mixture(components, weights, inputs, rule.num_draws, rule.generator)
    split, mean = predicted.uncertainty, predicted.probabilities.cpu().numpy()
    return Prediction(
        mean=mean[..., 1] if model.likelihood == "bernoulli" else mean,
        entropy=split.total.cpu().numpy(),
        data_uncertainty=split.data.cpu().numpy(),
        model_uncertainty=split.model.cpu().numpy(),
        association_uncertainty=split.association.cpu().numpy(),
        association=association,
    )
