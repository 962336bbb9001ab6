"""Two crossing targets in clutter, tracked with the package `assignment` alone.

Each scan's measurements are the rows of a cost matrix; the columns are the two targets, each of
which takes at most one measurement, and clutter, which takes any number. Joint probabilistic data
association (JPDA; Bar-Shalom and Fortmann, 1988) updates each track by the marginal probabilities
of its measurements; multiple hypothesis tracking (MHT; Reid, 1979) keeps the most probable joint
associations over all scans. `python -m experiments.examples.crossing_targets [SEED]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import assignment
from experiments.config.command_line import CommandLine, not_negative

Array = NDArray[np.float64]
SCANS, INTERVAL = 40, 1.0
DETECTION, CLUTTER = 0.9, 0.01
"""Probability of detection, and false measurements per unit of area."""

NOISE, ACCELERATION = 0.3, 0.02
"""Standard deviations of measurements and of the acceleration per scan."""

SIDE = 20.0
"""Side of the square that sensors cover, centred at 0."""

TRANSITION = np.kron(np.array([[1.0, INTERVAL], [0.0, 1.0]]), np.eye(2))
OBSERVATION = np.eye(2, 4)
PROCESS = ACCELERATION**2 * np.kron(
    np.array([[INTERVAL**4 / 4, INTERVAL**3 / 2], [INTERVAL**3 / 2, INTERVAL**2]]), np.eye(2)
)
STARTS = np.array([[-8.0, -1.6, 0.4, 0.08], [-8.0, 1.6, 0.4, -0.08]])
"""Position and velocity of both targets; they meet half way."""

AT_MOST_ONE = np.array([1, 1, 10_000])
"""Measurements per target, and of clutter."""


@dataclass(frozen=True, eq=False)
class Track:
    """Gaussian state of a target: position and velocity.

    Attributes:
        mean: float64 of shape (4,).
        covariance: float64 of shape (4, 4).
    """

    mean: Array
    covariance: Array

    def predicted(self) -> Track:
        """The state one scan later."""
        return Track(TRANSITION @ self.mean, TRANSITION @ self.covariance @ TRANSITION.T + PROCESS)

    def innovation_covariance(self) -> Array:
        """Covariance of a measurement, float64 of shape (2, 2)."""
        return OBSERVATION @ self.covariance @ OBSERVATION.T + NOISE**2 * np.eye(2)

    def log_density(self, measurements: Array) -> Array:
        """Log density of measurements, float64 of shape (measurements,).

        Args:
            measurements: positions, float64 of shape (measurements, 2).
        """
        apart = measurements - OBSERVATION @ self.mean
        covariance = self.innovation_covariance()
        squared = np.einsum("ij,ij->i", apart, np.linalg.solve(covariance, apart.T).T)
        log_density: Array = -0.5 * squared - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
        return log_density

    def updated(self, measurements: Array, probabilities: Array) -> Track:
        """Moment-matched mixture of the updates by each measurement, or by none.

        Args:
            measurements: positions, float64 of shape (measurements, 2).
            probabilities: that each is the target's, float64 of shape (measurements,), at most 1 in
                all. A single 1 is the Kalman update.
        """
        covariance = self.innovation_covariance()
        gain = np.linalg.solve(covariance, OBSERVATION @ self.covariance).T
        apart = measurements - OBSERVATION @ self.mean
        detected, mean = probabilities.sum(), probabilities @ apart
        spread = (probabilities[:, None] * apart).T @ apart - np.outer(mean, mean)
        return Track(
            self.mean + gain @ mean,
            self.covariance - gain @ (detected * covariance - spread) @ gain.T,
        )


def costs_of(tracks: tuple[Track, ...], measurements: Array) -> Array:
    """Negative log weights of measurements, (measurements, targets + 1), nats; the last is clutter.

    Args:
        tracks: predicted states of the targets.
        measurements: positions, float64 of shape (measurements, 2).
    """
    odds = np.log(DETECTION / (1 - DETECTION) / CLUTTER)
    of_targets = [-(track.log_density(measurements) + odds) for track in tracks]
    return np.column_stack([*of_targets, np.zeros(len(measurements))])


def scans(seed: int) -> tuple[Array, list[Array]]:
    """True positions (scans, targets, 2), and the measurements of each scan in random order.

    Args:
        seed: of noise, missed detections and clutter.
    """
    random = np.random.default_rng(seed)
    states, truth, measured = STARTS.copy(), [], []
    for _ in range(SCANS):
        states = states @ TRANSITION.T + random.multivariate_normal(np.zeros(4), PROCESS, size=2)
        seen = states[random.random(2) < DETECTION, :2]
        false = SIDE * (random.random((random.poisson(CLUTTER * SIDE**2), 2)) - 0.5)
        noisy = np.concatenate([seen + NOISE * random.normal(size=seen.shape), false])
        measured.append(random.permutation(noisy))
        truth.append(states[:, :2].copy())
    return np.array(truth), measured


def start_tracks() -> tuple[Track, ...]:
    """The targets' states before the first scan."""
    return tuple(Track(start, np.diag([0.1, 0.1, 0.01, 0.01])) for start in STARTS)


def jpda(measured: list[Array]) -> Array:
    """Estimated positions (scans, targets, 2) by joint probabilistic data association.

    Args:
        measured: measurements of each scan.
    """
    tracks, positions = start_tracks(), []
    for measurements in measured:
        tracks = tuple(track.predicted() for track in tracks)
        if len(measurements):
            costs = costs_of(tracks, measurements)
            marginals = assignment.association_marginals(costs, upper=AT_MOST_ONE)
            tracks = tuple(
                track.updated(measurements, column)
                for track, column in zip(tracks, marginals.probabilities.T, strict=False)
            )
        positions.append([track.mean[:2] for track in tracks])
    return np.array(positions)


def mht(measured: list[Array], num_hypotheses: int = 20) -> tuple[Array, list[float]]:
    """Estimated positions (scans, targets, 2) by multiple hypothesis tracking.

    Args:
        measured: measurements of each scan.
        num_hypotheses: joint associations kept after each scan.

    Returns:
        Mean positions over the hypotheses, and the probability mass kept in each scan.
    """
    hypotheses, log_weights = [start_tracks()], np.zeros(1)
    positions, masses = [], []
    for measurements in measured:
        predicted = [tuple(track.predicted() for track in tracks) for tracks in hypotheses]
        if len(measurements):
            costs = [costs_of(tracks, measurements) for tracks in predicted]
            children = assignment.m_best_over_parents(
                costs, log_weights, num_hypotheses, upper=AT_MOST_ONE
            )
            taken = children.labels[:, :, None] == np.arange(len(STARTS))
            predicted = [
                tuple(
                    track.updated(measurements, column.astype(np.float64))
                    for track, column in zip(predicted[parent], chosen.T, strict=True)
                )
                for parent, chosen in zip(children.parent, taken, strict=True)
            ]
            log_weights = assignment.normalise(-children.excess)
            masses.append(float(np.exp(children.log_captured_mass)))
        hypotheses = predicted
        means = np.array([[track.mean[:2] for track in tracks] for tracks in hypotheses])
        positions.append(np.tensordot(np.exp(log_weights), means, axes=1))
    return np.array(positions), masses


def error(positions: Array, truth: Array) -> float:
    """Root mean squared distance of estimated from true positions.

    Args:
        positions: float64 of shape (scans, targets, 2).
        truth: the same of the targets.
    """
    return float(np.sqrt(((positions - truth) ** 2).sum(axis=2).mean()))


def main(seed: int = 0) -> None:
    """Track both targets both ways and print how far the estimates are from the truth.

    Args:
        seed: of noise, missed detections and clutter.
    """
    truth, measured = scans(seed)
    by_hypotheses, masses = mht(measured)
    print(f"{SCANS} scans, {sum(map(len, measured))} measurements, {NOISE} standard deviation")
    print(f"JPDA: error {error(jpda(measured), truth):.2f}")
    print(f"MHT:  error {error(by_hypotheses, truth):.2f}, least mass kept {min(masses):.3f}")


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seed", not_negative, 0, "seed")
    return line.parse_args(words)


if __name__ == "__main__":
    main(parsed().seed)
