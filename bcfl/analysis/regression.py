"""Predictions of numbers, by the mixture of cluster models that serves a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from bcfl.analysis.predictions import fitting
from bcfl.architecture.evaluation import network_outputs
from bcfl.executors.arithmetic import computing
from bcfl.hypotheses.membership import Membership
from posteriors.torch_state import standard_switches

if TYPE_CHECKING:
    from bcfl.analysis.run import Run


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuePrediction:
    """The prediction of numbers by the mixture of models that serves a client.

    Attributes:
        mean: (samples, outputs) predicted values.
        noise_variance: of the likelihood, in the square of the targets' unit: 1.
        association_variance: (samples, outputs) variance of the models' means over which of them
            serves the client.
        association: (clusters,) probability that the client is in a cluster, see `Prediction`.
    """

    mean: NDArray[np.float64]
    noise_variance: float
    association_variance: NDArray[np.float64]
    association: NDArray[np.float64]

    @property
    def variance(self) -> NDArray[np.float64]:
        """(samples, outputs) variance of the prediction."""
        return self.noise_variance + self.association_variance


@standard_switches()
def predict_values(
    run: Run,
    client: str,
    inputs: ArrayLike | torch.Tensor,
    *,
    by: Literal["belief", "association"] = "belief",
) -> ValuePrediction:
    """Predict numbers with the mixture of cluster models under a client's posterior membership.

    Each model predicts a Gaussian of unit variance around its output (`plug-in`).

    Args:
        run: the run.
        client: name of the client.
        inputs: (samples, *input_shape).
        by: as in `predict`.

    Raises:
        ValueError: the client or `by` is unknown, the inputs do not fit, or the model predicts
            classes or labels.
    """
    if run.model.likelihood != "gaussian":
        raise ValueError("predict_values needs a model with Gaussian likelihood; see predict")
    if client not in run.clients:
        raise ValueError(f"client must be one of {run.clients[:3]}..., got {client!r}")
    if by not in ("belief", "association"):
        raise ValueError(f"by must be 'belief' or 'association', got {by!r}")
    memberships = Membership.of_client if by == "belief" else Membership.by_association
    membership = memberships(run.hypotheses, client)
    x = fitting(run.model, inputs, run.hypotheses.best.clusters[0].mean(run.model))
    mixture = membership.mixture
    with computing("full", x.device), torch.no_grad():
        networks = (run.model.network(p.mean(run.model), p.buffers(run.model)) for p in mixture)
        outputs = np.stack([network_outputs(n, x).double().cpu().numpy() for n in networks])
    weights = np.reshape(list(mixture.values()), (-1, 1, 1))
    mean = (weights * outputs).sum(axis=0)
    return ValuePrediction(
        mean=mean,
        noise_variance=1.0,
        association_variance=(weights * (outputs - mean) ** 2).sum(axis=0),
        association=membership.association,
    )
