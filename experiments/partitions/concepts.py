"""Two ways to see the same samples: what every other client has that the rest have not.

Clients of group 0 see samples as they are. Those of group 1 see labels shifted, noise on their
inputs, have other classes, or fewer samples with some classes merged; see each concept. Scenarios
S1, S2, A1 and A2 of Zhang (2024), "Asymmetric clustering in federated continual learning" (FAACL),
are made of these.
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
    """What sets group 1 apart.

    Attributes:
        alter: what a client sees of its samples, from the samples and where they lie.
        keeps: (samples,) whether a client of a group may hold samples of these classes; all if
            None.
        share: share of its samples that a client of group 1 keeps.
    """

    alter: Callable[[Samples, Place], Samples]
    keeps: Callable[[Targets, int], NDArray[np.bool_]] | None = None
    share: float = 1.0

    def kept_rows(self, rows: Indices, targets: Targets, group: int, split: Split) -> Indices:
        """(rows,) of a data set that a client of a group holds, of those that are dealt to it.

        Args:
            rows: what is dealt to the client.
            targets: (rows,) classes of these.
            group: 0 or 1.
            split: how many samples a client has at most; a share has its `min_samples` too.
        """
        if self.keeps is not None:
            rows = rows[self.keeps(targets, group)]
        if group == 0 or self.share == 1:
            return rows
        whole = len(rows[: split.samples_per_client])
        return rows[: max(split.min_samples, round(self.share * whole))]


def as_they_are(samples: Samples, place: Place) -> Samples:
    """Nothing is changed."""
    del place
    return samples


@dataclass(frozen=True)
class ShiftedLabels:
    """Group 1 sees class y as y + 1, the last as 0."""

    num_classes: int

    def __call__(self, samples: Samples, place: Place) -> Samples:
        """What a client sees."""
        inputs, targets = samples
        return inputs, (targets + place.group) % self.num_classes


def merged_labels(samples: Samples, place: Place) -> Samples:
    """Group 1 sees classes 1 and 3 as class 2."""
    inputs, targets = samples
    return inputs, np.where(place.group & np.isin(targets, MERGED), INTO, targets)


@dataclass(frozen=True)
class HalfOfTheClasses:
    """Group 0 has the first half of the classes, group 1 the second."""

    num_classes: int

    def __call__(self, targets: Targets, group: int) -> NDArray[np.bool_]:
        """(samples,) whether a group has such samples."""
        found: NDArray[np.bool_] = (targets >= self.num_classes // 2) == bool(group)
        return found


@dataclass(frozen=True)
class Noise:
    """Group 1 sees Gaussian noise, then salt and pepper, each clipped to [low, 1].

    Attributes:
        variance: of the Gaussian noise.
        amount: share of the pixels that become 1 or `low`, half of them each.
        seed: fixes the noise.
        by_index: sample i of every view has the same noise everywhere, as in the program of the
            authors; training noise then tells the noise of test samples. Otherwise all differ.
        low: smallest value.
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

    def __call__(self, samples: Samples, place: Place) -> Samples:
        """What a client sees."""
        inputs, targets = samples
        if not place.group or not len(inputs):
            return samples
        if self.by_index:
            noisy = [self.added(x, np.random.default_rng(i)) for i, x in enumerate(inputs)]
            return np.stack(noisy), targets
        random = generator(self.seed, "partition", "noise", place.client, place.view)
        return self.added(inputs, random), targets

    def added(self, inputs: Inputs, random: Generator) -> Inputs:
        """Inputs with noise."""
        noisy = inputs + random.normal(0, self.variance**0.5, inputs.shape).astype(np.float32)
        noisy = np.clip(noisy, self.low, 1)
        dice = random.random(inputs.shape)
        noisy[dice < self.amount / 2] = 1
        noisy[(dice >= self.amount / 2) & (dice < self.amount)] = self.low
        return noisy


NOISE: Mapping[str, tuple[float, float]] = {
    "mnist": (0.4, 0.7),
    "fashion-mnist": (0.9, 0.7),
    "emnist": (1.0, 0.6),
    "cifar10": (0.6, 0.4),
}
"""Variance and amount by data set, Table B.3 of the FAACL thesis; for others that of MNIST."""

CONCEPTS: Mapping[str, Callable[[str, int, int], Concept]] = {
    "label-halves": lambda name, classes, seed: Concept(as_they_are, HalfOfTheClasses(classes)),
    "shifted-labels": lambda name, classes, seed: Concept(ShiftedLabels(classes)),
    "noisy": lambda name, classes, seed: Concept(Noise(*NOISE.get(name, NOISE["mnist"]), seed)),
    "merged-labels": lambda name, classes, seed: Concept(merged_labels, share=SMALL_SHARE),
}
"""By name, from the name of a data set, its number of classes and a seed."""
