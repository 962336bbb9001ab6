"""Retention: accuracy on the clients' samples of earlier time steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl import ClientData, Hypothesis, Model, View
from bcfl.data import TEST, TRAIN, num_steps, view_name
from bcfl.executors import FlatModule
from bcfl.hypotheses import UNSEEN, Posterior
from posteriors.curvature.likelihood import negative_log_likelihood
from posteriors.networks.functional import own_copy

REMEMBERED = 50


@dataclass(frozen=True)
class Retention:
    """Accuracy on the test samples of all time steps but the last, mean over clients and steps.

    Attributes:
        served: of the model that serves the client now, without knowledge that the data are old.
        kept: of the model by which the client predicts samples of that time step, where the method
            keeps one (`Hypothesis.at_step`); else of whichever cluster's model fits some of the
            client's training samples of the time step best: what the federation has retained. Where
            each client is its own cluster these are the other clients' models too.
        kept_by_step: `kept` of each of those time steps, mean over clients.
    """

    served: float
    kept: float
    kept_by_step: tuple[float, ...] = ()

    def backward_transfer(self, ends: Sequence[float]) -> float:
        """Mean change of the accuracy on a time step from its end until now, over earlier steps.

        Its negative is what was forgotten (Lopez-Paz and Ranzato 2017, equation 3).

        Args:
            ends: accuracy at the end of each time step.
        """
        changes = [now - end for now, end in zip(self.kept_by_step, ends, strict=False)]
        return float(np.mean(changes)) if changes else float("nan")

    @classmethod
    def of(cls, model: Model, hypothesis: Hypothesis, clients: Sequence[ClientData]) -> Retention:
        """Score the models of a hypothesis; NaN where there is one time step.

        Args:
            model: the architecture, a classifier.
            hypothesis: with its models.
            clients: with the views of all time steps.
        """
        pieces = list(_pieces(clients))
        if not pieces:
            return cls(float("nan"), float("nan"))
        losses, accuracy = _scores(model, hypothesis.clusters, pieces)
        rows = np.arange(len(pieces))
        best = accuracy[losses.argmin(axis=0), rows]
        for row, piece in enumerate(pieces):
            own = hypothesis.at_step(model, piece.client, piece.step)
            if own is not None:
                (_, best[row : row + 1]) = _scores(model, [own], [piece])
        labels = np.array([hypothesis.association.label(piece.client) for piece in pieces])
        known = labels != UNSEEN
        served = accuracy[labels[known], rows[known]]
        steps = np.array([piece.step for piece in pieces])
        by_step = tuple(float(best[steps == step].mean()) for step in np.unique(steps))
        now = float(served.mean()) if known.any() else float("nan")
        return cls(now, float(best.mean()), by_step)


@dataclass(frozen=True, eq=False)
class _Piece:
    """A client's samples of an earlier time step."""

    client: str
    step: int
    remembered: View
    tested: View


def _pieces(clients: Sequence[ClientData]) -> Iterator[_Piece]:
    for step in range(num_steps(clients) - 1):
        train, test = view_name(TRAIN, step), view_name(TEST, step)
        for data in clients:
            if train in data.views and len(data.views.get(test, ())):
                few = torch.arange(min(REMEMBERED, len(data.views[train])))
                yield _Piece(data.client, step, data.views[train].take(few), data.views[test])


def _scores(
    model: Model, clusters: Sequence[Posterior], pieces: Sequence[_Piece]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(models, pieces) mean loss on remembered samples, and accuracy on test samples."""
    mean = clusters[0].mean(model)
    workspace = FlatModule(model, mean.device, mean.dtype)
    scores = []
    for cluster in clusters:
        module = workspace.load(cluster.mean(model), cluster.buffers(model), training=False)
        with torch.no_grad():
            for piece in pieces:
                old, new = piece.remembered, piece.tested
                outputs = module(own_copy(old.inputs, mean))
                loss = negative_log_likelihood(outputs, old.targets, model.likelihood, "mean")
                right = _right(module(own_copy(new.inputs, mean)), new.targets)
                scores.append((float(loss), float(right.double().mean())))
    table = np.array(scores).reshape(len(clusters), len(pieces), 2)
    return table[:, :, 0], table[:, :, 1]


def _right(outputs: Tensor, targets: Tensor) -> Tensor:
    """(samples,) whether the class, or all labels of a sample, are predicted."""
    if targets.ndim > 1:
        return ((outputs > 0) == targets.bool()).all(1)
    return outputs.argmax(1) == targets
