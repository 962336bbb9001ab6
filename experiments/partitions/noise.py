"""Noisy inputs of a group of clients, as in scenario A1 of Zhang (2024), FAACL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.assembly import Place, Samples

Inputs: TypeAlias = NDArray[np.float32]
LEAST_DEVIATION = 1e-3


def standardised_pixels(dataset: Dataset) -> Dataset:
    """The data set with inputs of mean 0 and deviation 1 at each pixel, over all samples.

    The deviation is increased by 0.001, as in the program from which FAACL has its data, so that
    a pixel that never changes is 0.
    """
    inputs = dataset.inputs
    mean, deviation = inputs.mean(axis=0, dtype=np.float64), inputs.std(axis=0, dtype=np.float64)
    scaled = ((inputs - mean) / (deviation + LEAST_DEVIATION)).astype(np.float32)
    return replace(dataset, inputs=scaled)


NOISE: Mapping[str, tuple[float, float]] = {
    "mnist": (0.4, 0.7),
    "fashion-mnist": (0.9, 0.7),
    "emnist": (1.0, 0.6),
    "cifar-10": (0.6, 0.4),
}
"""Variance and amount by data set, Table B.3 of the FAACL thesis.

Variants of a data set, such as `emnist-letters` and the file `cifar10_jpeg`, have its noise; all
others have MNIST's.
"""


def check_noise_fits(dataset: Dataset) -> None:
    """Check that inputs are within [0, 1], to which noisy ones are clipped.

    Raises:
        ValueError: they are not.
    """
    low, high = float(dataset.inputs.min()), float(dataset.inputs.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"noisy inputs are clipped to [0, 1]; those of dataset {dataset.name!r} are from "
            f"{low:.4g} to {high:.4g}"
        )


def noise_of(name: str) -> tuple[float, float]:
    """Variance and amount of the noise of a data set, see `NOISE`."""
    for each, noise in NOISE.items():
        if re.match(each.replace("-", "[-_]?") + r"(?!\d)", name, re.IGNORECASE):
            return noise
    return NOISE["mnist"]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Inputs of group 1 have Gaussian, then salt-and-pepper noise, clipped to [low, 1].

    Attributes:
        variance: variance of the Gaussian noise.
        amount: share of the pixels that become 1 or `low`, in equal parts.
        seed: seed of the noise.
        by_index: whether sample i of each view has the same noise, as in the authors' program,
            which leaks the noise of test samples into training. Otherwise noise is independent.
        low: lower bound of the inputs.

    Raises:
        ValueError: the variance or amount is out of range.
    """

    variance: float
    amount: float
    seed: int
    by_index: bool = False
    low: float = 0.0

    def __post_init__(self) -> None:
        if not self.variance >= 0:
            raise ValueError(f"noise[0] (variance) must be at least 0, got {self.variance!r}")
        if not 0 <= self.amount <= 1:
            raise ValueError(f"noise[1] (amount) must lie in [0, 1], got {self.amount!r}")

    @classmethod
    def of_data_set(
        cls,
        name: str,
        seed: int,
        noise: tuple[float, float] | None = None,
        by_index: bool = False,
        standardised: bool = False,
    ) -> Noise:
        """The noise of a data set's scenario.

        Args:
            name: name of the data set.
            seed: seed of the noise.
            noise: variance and amount; those of `noise_of` by default.
            by_index: see `Noise`.
            standardised: whether pixels are standardised, and clipped to [-1, 1].
        """
        variance, amount = noise_of(name) if noise is None else noise
        low = -1.0 if standardised else 0.0
        return cls(variance=variance, amount=amount, seed=seed, by_index=by_index, low=low)

    def __call__(self, samples: Samples, place: Place) -> Samples:
        """Transform the samples of a client."""
        inputs, targets = samples
        if not place.group or not len(inputs):
            return samples
        if self.by_index:
            noisy = [self.added(x, np.random.default_rng(i)) for i, x in enumerate(inputs)]
            return np.stack(noisy), targets
        random = generator(self.seed, "partition", "noise", place.client, place.view)
        return self.added(inputs, random), targets

    def added(self, inputs: Inputs, random: Generator) -> Inputs:
        """Add noise to inputs.

        Args:
            inputs: (samples, ...) or (...) float32.
            random: source of randomness.
        """
        noisy = inputs + random.normal(0, self.variance**0.5, inputs.shape).astype(np.float32)
        noisy = np.clip(noisy, self.low, 1)
        dice = random.random(inputs.shape)
        noisy[dice < self.amount / 2] = 1
        noisy[(dice >= self.amount / 2) & (dice < self.amount)] = self.low
        return noisy
