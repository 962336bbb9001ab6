"""Concepts of groups: group 0 has the original samples, group 1 transformed ones.

Group 1 has shifted labels, noisy inputs, other classes, or fewer samples with merged classes. These
are the scenarios S1, S2, A1 and A2 of Zhang (2024), "Asymmetric clustering in federated continual
learning" (FAACL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bcfl.data import TEST
from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.assembly import Place, Samples
from experiments.partitions.partition import Indices, Partition, Split

Inputs: TypeAlias = NDArray[np.float32]
Targets: TypeAlias = NDArray[np.int64]
Kept: TypeAlias = Callable[[Targets, int], NDArray[np.bool_]]
MERGED, INTO = (1, 3), 2
SMALL_SHARE = 0.25
LEAST_DEVIATION = 1e-3
OTHER_HALF = "of the other half of the classes, left out of test views"


@dataclass(frozen=True)
class Concept:
    """Difference between the two groups.

    Attributes:
        alter: transform of the samples of a client.
        keeps: (samples,) bool from targets (samples,) and group: classes that a client of the group
            may hold; None for all classes.
        share: share of its samples that a client of another group than 0 keeps.
        tests: classes that test views hold, as `keeps`; None for those of the client.
        count: number of concepts, numbered from 0.
    """

    alter: Callable[[Samples, Place], Samples]
    keeps: Kept | None = None
    share: float = 1.0
    tests: Kept | None = None
    count: int = 2

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


def rotated_images(samples: Samples, place: Place) -> Samples:
    """Images of group g are rotated counter-clockwise by g quarter turns; see `Alter`.

    Raises:
        ValueError: the inputs are not square images.
    """
    inputs, targets = samples
    if inputs.ndim < 3 or inputs.shape[-1] != inputs.shape[-2]:
        raise ValueError(
            f"rotations need square images (..., height, width), got inputs of {inputs.shape[1:]}"
        )
    return np.ascontiguousarray(np.rot90(inputs, place.group, axes=(-2, -1))), targets


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


@dataclass(frozen=True)
class RandomOtherLabels:
    """Random labels for training samples of the other half of the classes.

    Attributes:
        halves: classes of each group.
        seed: seed of the labels.
    """

    halves: HalfOfTheClasses
    seed: int

    def __call__(self, samples: Samples, place: Place) -> Samples:
        """Transform the samples of a client."""
        inputs, targets = samples
        view, *step = place.view.split(":")
        if view == TEST:
            return samples
        random = generator(self.seed, "partition", "labels", place.client, *step)
        labels = random.integers(0, self.halves.num_classes, len(targets))
        return inputs, np.where(self.halves(targets, place.group), targets, labels)


def tested_on(partition: Partition, kept: Kept) -> Partition:
    """The partition with test samples of some classes alone.

    Args:
        partition: with true groups.
        kept: (samples,) bool from targets (samples,) and group.
    """
    clients, indices, dropped = [], dict(partition.indices), 0
    for data in partition:
        views, rows = dict(data.views), dict(indices[data.client])
        if TEST in views:
            if views[TEST].targets.ndim > 1:
                raise ValueError(f"partition {partition.name!r} needs samples of one class each")
            own = kept(views[TEST].targets.numpy(), data.group or 0)
            chosen = np.flatnonzero(own)
            dropped += len(own) - len(chosen)
            views[TEST] = type(views[TEST])(views[TEST].inputs[chosen], views[TEST].targets[chosen])
            rows[TEST] = rows[TEST][chosen]
        clients.append(replace(data, views=views))
        indices[data.client] = rows
    left_out = {**partition.left_out, **({OTHER_HALF: dropped} if dropped else {})}
    return replace(partition, clients=tuple(clients), indices=indices, left_out=left_out)


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

Variants of a data set, such as `emnist-letters`, have its noise; all others have MNIST's.
"""


def noise_of(name: str) -> tuple[float, float]:
    """Variance and amount of the noise of a data set, see `NOISE`."""
    known = (noise for each, noise in NOISE.items() if f"{name}-".startswith(f"{each}-"))
    return next(known, NOISE["mnist"])


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


def names_of(concept: str, classes: int) -> tuple[str, ...]:
    """What the samples of each concept are; empty for one that is not known.

    Args:
        concept: one of `CONCEPTS`.
        classes: number of classes.
    """
    first, second = _classes(0, classes // 2), _classes(classes // 2, classes)
    known = {
        "label-halves": (first, second),
        "random-label-halves": (f"{first}, random labels else", f"{second}, random labels else"),
        "shifted-labels": ("original labels", "labels shifted by 1"),
        "noisy": ("without noise", "noisy"),
        "merged-labels": ("original labels", "labels 1 and 3 are 2"),
        "rotations": degrees(4),
    }
    return known.get(concept, ())


def degrees(count: int) -> tuple[str, ...]:
    """Angles that divide a whole turn, counter-clockwise.

    Args:
        count: number of angles.
    """
    return tuple(f"{number * 360 // count}°" for number in range(count))


def _classes(start: int, stop: int) -> str:
    return f"class {start}" if stop - start == 1 else f"classes {start} to {stop - 1}"


def _random_halves(classes: int, seed: int) -> Concept:
    halves = HalfOfTheClasses(classes)
    return Concept(RandomOtherLabels(halves, seed), tests=halves)


CONCEPTS: Mapping[str, Callable[[str, int, int], Concept]] = {
    "label-halves": lambda name, classes, seed: Concept(unchanged, HalfOfTheClasses(classes)),
    "random-label-halves": lambda name, classes, seed: _random_halves(classes, seed),
    "shifted-labels": lambda name, classes, seed: Concept(ShiftedLabels(classes)),
    "noisy": lambda name, classes, seed: Concept(Noise.of_data_set(name, seed)),
    "merged-labels": lambda name, classes, seed: Concept(merged_labels, share=SMALL_SHARE),
    "rotations": lambda name, classes, seed: Concept(rotated_images, count=4),
}
"""Concepts by name, built from the name of a data set, its number of classes and a seed.

`random-label-halves` is what the author's program does in place of `label-halves`.
"""
