"""Quantities of the convergence analysis of clustered federated learning, measured in a round.

Ma, "Clustered Federated Learning" (2023), chapter 3. The gradient g_i of client i is the mean of
those that it followed in the round, its update divided by -η Q_i, with Q_i the number of its steps;
momentum and regularisers count as gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.policy import Candidate
from bcfl.trackers.update_measures import LocalUpdate


def convergence_of(
    updates: Sequence[LocalUpdate],
    candidate: Candidate,
    clusters: Sequence[Posterior],
    model: Model,
) -> dict[str, float]:
    """Measures of a round by name; empty without updates.

    - `objective_c`: 𝒞 of equation 3.4 after the maximisation step, the mean squared distance of
      local models from the model of their cluster, weighted by samples.
    - `clusterability`: B of equation 3.18, the largest |ḡ_k - g_i| / |ḡ_k| over clients and
      clusters, with ḡ_k the sample-weighted mean gradient of the cluster.
    - `step_size_bound`: the largest learning rate that equation 3.16 allows every client, the least
      |θ_i - Θ_k| / (Q_i U), with U the largest |g_i|.
    - `descent_margin`: the numerator of the second bound of equation 3.35 in units of its first
      term, 1 - B U² / E|∇F|². 𝓕 is sure to decrease, at some learning rate, only where it is
      positive.

    Args:
        updates: of the round.
        candidate: how they contribute to clusters.
        clusters: models of the clusters after the round.
        model: the architecture.
    """
    masses = _masses(updates, candidate)
    distances, squared_means, ratios, lengths, reaches = 0.0, 0.0, [0.0], [0.0], [np.inf]
    for column in np.flatnonzero(masses.sum(axis=0)).tolist():
        rows = np.flatnonzero(masses[:, column]).tolist()
        centre = clusters[column].mean(model)
        gradients = [_gradient(updates[row], model) for row in rows]
        mean = _weighted(gradients, masses[rows, column])
        for row, gradient in zip(rows, gradients, strict=True):
            apart = _norm(updates[row].reply.mean - centre)
            distances += masses[row, column] * apart**2
            ratios.append(_ratio(_norm(mean - gradient), _norm(mean)))
            lengths.append(_norm(gradient))
            reaches.append(apart / _num_steps(updates[row]))
        squared_means += masses[:, column].sum() * _norm(mean) ** 2
    total, widest, steepest = float(masses.sum()), max(ratios), max(lengths)
    if not total:
        return {}
    return {
        "objective_c": distances / total,
        "clusterability": widest,
        "step_size_bound": _ratio(min(reaches), steepest),
        "descent_margin": 1 - widest * _ratio(steepest**2, squared_means / total),
    }


def _gradient(update: LocalUpdate, model: Model) -> torch.Tensor:
    """The mean gradient of a local training, (parameters,); 0 where nothing is learnt."""
    move = update.start.mean(model) - update.reply.mean
    return move / (update.training.objective.learning_rate * _num_steps(update) or 1.0)


def _num_steps(update: LocalUpdate) -> int:
    return update.training.objective.steps(update.reply.num_samples)


def _masses(updates: Sequence[LocalUpdate], candidate: Candidate) -> NDArray[np.float64]:
    """(updates, clusters) samples with which each update counts in each cluster."""
    position = {training: row for row, training in enumerate(candidate.trainings)}
    rows = [candidate.contribution_weights[position[u.training]] for u in updates]
    samples = np.array([u.reply.num_samples for u in updates], dtype=np.float64)
    masses: NDArray[np.float64] = np.array(rows).reshape(len(updates), -1) * samples[:, None]
    return masses


def _weighted(vectors: Sequence[torch.Tensor], weights: NDArray[np.float64]) -> torch.Tensor:
    shares = (weights / weights.sum()).tolist()
    return sum(
        (share * vector for share, vector in zip(shares, vectors, strict=True)),
        start=torch.zeros_like(vectors[0]),
    )


def _norm(vector: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(vector))


def _ratio(one: float, other: float) -> float:
    """The quotient, 0 of two zeros and infinite of a zero below."""
    return one / other if other else (np.inf if one else 0.0)
