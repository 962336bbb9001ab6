"""Concepts of two groups: group 0 has the original samples, group 1 transformed ones.

Group 1 has shifted labels, noisy inputs, other classes, or fewer samples with merged classes. These
are the scenarios S1, S2, A1 and A2 of Zhang (2024), "Asymmetric clustering in federated continual
learning" (FAACL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bcfl.runtime import generator
from experiments.partitions.assembly import Place, Samples
from experiments.partitions.partition import Indices, Split

Inputs: TypeAlias = NDArray[np.float32]
Targets: TypeAlias = NDArray[np.int64]
MERGED, INTO = (1, 3), 2
SMALL_SHARE = 0.25


@dataclass(frozen=True)
class Concept:
    """Difference between the two groups.

    Attributes:
        alter: transform of the samples of a client.
        keeps: (samples,) bool from targets (samples,) and group: classes that a client of the group
            may hold; None for all classes.
        share: share of its samples that a client of group 1 keeps.
    """

    alter: Callable[[Samples, Place], Samples]
    keeps: Callable[[Targets, int], NDArray[np.bool_]] | None = None
    share: float = 1.0

    def kept_rows(self, rows: Indices, targets: Targets, group: int, split: Split) -> Indices:
        """Rows that a client keeps of those allocated to it.

        Args:
            rows: (rows,) int64 allocated rows.
            targets: (rows,) int64 classes of these rows.
            group: group of the client, 0 or 1.
            split: cap and minimum of the number of samples of a client.
        """
        if self.keeps is not None:
            rows = rows[self.keeps(targets, group)]
        if group == 0 or self.share == 1:
            return rows
        whole = len(rows[: split.samples_per_client])
        return rows[: max(split.min_samples, round(self.share * whole))]


def unchanged(samples: Samples, place: Place) -> Samples:
    """Identity transform; see `Alter`."""
    del place
    return samples


@dataclass(frozen=True)
class ShiftedLabels:
    """Concept shift: label y of group 1 becomes y + 1, modulo the number of classes.

    Attributes:
        num_classes: number of classes.
    """

    num_classes: int

    def __call__(self, samples: Samples, place: Place) -> Samples:
        """Transform the samples of a client."""
        inputs, targets = samples
        return inputs, (targets + place.group) % self.num_classes


def merged_labels(samples: Samples, place: Place) -> Samples:
    """Labels 1 and 3 of group 1 become 2; see `Alter`."""
    inputs, targets = samples
    return inputs, np.where(place.group & np.isin(targets, MERGED), INTO, targets)


@dataclass(frozen=True)
class HalfOfTheClasses:
    """Group 0 has the first half of the classes, group 1 the second half.

    Attributes:
        num_classes: number of classes.
    """

    num_classes: int

    def __call__(self, targets: Targets, group: int) -> NDArray[np.bool_]:
        """(samples,) bool, whether the group has the classes `targets`."""
        held: NDArray[np.bool_] = (targets >= self.num_classes // 2) == bool(group)
        return held


NOISE: Mapping[str, tuple[float, float]] = {
    "mnist": (0.4, 0.7),
    "fashion-mnist": (0.9, 0.7),
    "emnist": (1.0, 0.6),
    "cifar10": (0.6, 0.4),
}
"""Variance and amount by data set, Table B.3 of the FAACL thesis; MNIST's for all others."""


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
    def of_data_set(cls, name: str, seed: int) -> Noise:
        """The noise of a data set's scenario, see `NOISE`."""
        variance, amount = NOISE.get(name, NOISE["mnist"])
        return cls(variance=variance, amount=amount, seed=seed)

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


CONCEPTS: Mapping[str, Callable[[str, int, int], Concept]] = {
    "label-halves": lambda name, classes, seed: Concept(unchanged, HalfOfTheClasses(classes)),
    "shifted-labels": lambda name, classes, seed: Concept(ShiftedLabels(classes)),
    "noisy": lambda name, classes, seed: Concept(Noise.of_data_set(name, seed)),
    "merged-labels": lambda name, classes, seed: Concept(merged_labels, share=SMALL_SHARE),
}
"""Concepts by name, built from the name of a data set, its number of classes and a seed."""
