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
from numpy.typing import NDArray

from bcfl.data import TEST
from bcfl.runtime import generator
from experiments.partitions.assembly import Place, Samples
from experiments.partitions.noise import Noise
from experiments.partitions.partition import Indices, Partition, Split

Targets: TypeAlias = NDArray[np.int64]
Kept: TypeAlias = Callable[[Targets, int], NDArray[np.bool_]]
MERGED, INTO = (1, 3), 2
SMALL_SHARE = 0.25
OTHER_HALF = "of the other half of the classes, left out of test views"


@dataclass(frozen=True, kw_only=True)
class Concept:
    """Difference between groups, mostly two.

    Attributes:
        names: what the samples of each group are, by number.
        alter: transform of the samples of a client.
        relabels: whether it changes the classes of samples.
        keeps: (samples,) bool from targets (samples,) and group: classes that a client of the group
            may hold; None for all classes.
        share: share of its samples that a client of another group than 0 keeps.
        tests: classes that test views hold, as `keeps`; None for those of the client.
    """

    names: tuple[str, ...]
    alter: Callable[[Samples, Place], Samples]
    relabels: bool = False
    keeps: Kept | None = None
    share: float = 1.0
    tests: Kept | None = None

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

    @property
    def names(self) -> tuple[str, ...]:
        """The classes of each group, such as `classes 0 to 4`."""
        half = self.num_classes // 2
        return tuple(
            f"class {start}" if stop - start == 1 else f"classes {start} to {stop - 1}"
            for start, stop in ((0, half), (half, self.num_classes))
        )


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


def angles(count: int) -> tuple[str, ...]:
    """Names of groups whose images are rotated counter-clockwise by even parts of a whole turn.

    Args:
        count: number of groups.
    """
    return tuple(f"rotated by {number * 360 // count}°" for number in range(count))


def label_halves(num_classes: int) -> Concept:
    """Each group has one half of the classes.

    Args:
        num_classes: number of classes.
    """
    halves = HalfOfTheClasses(num_classes)
    return Concept(names=halves.names, alter=unchanged, keeps=halves)


def random_label_halves(num_classes: int, seed: int) -> Concept:
    """Each group has one half of the classes, and random labels in training for the other.

    Args:
        num_classes: number of classes.
        seed: seed of the labels.
    """
    halves = HalfOfTheClasses(num_classes)
    names = tuple(f"{name}, random labels for the others" for name in halves.names)
    alter = RandomOtherLabels(halves, seed)
    return Concept(names=names, alter=alter, relabels=True, tests=halves)


def shifted_labels(num_classes: int) -> Concept:
    """Labels of group 1 are shifted by one.

    Args:
        num_classes: number of classes.
    """
    names = ("original labels", "labels shifted by 1")
    return Concept(names=names, alter=ShiftedLabels(num_classes), relabels=True)


def noisy_inputs(noise: Noise) -> Concept:
    """Inputs of group 1 are noisy.

    Args:
        noise: their noise.
    """
    return Concept(names=("without noise", "noisy"), alter=noise)


def merged_classes(share: float = SMALL_SHARE) -> Concept:
    """Group 1 has fewer samples, and merged classes.

    Args:
        share: share of their samples that its clients keep.
    """
    names = ("original labels", "labels 1 and 3 are 2")
    return Concept(names=names, alter=merged_labels, relabels=True, share=share)


CONCEPTS: Mapping[str, Callable[[str, int, int], Concept]] = {
    "label-halves": lambda name, classes, seed: label_halves(classes),
    "random-label-halves": lambda name, classes, seed: random_label_halves(classes, seed),
    "shifted-labels": lambda name, classes, seed: shifted_labels(classes),
    "noisy": lambda name, classes, seed: noisy_inputs(Noise.of_data_set(name, seed)),
    "merged-labels": lambda name, classes, seed: merged_classes(),
    "rotations": lambda name, classes, seed: Concept(names=angles(4), alter=rotated_images),
}
"""Concepts by name, built from the name of a data set, its number of classes and a seed.

`random-label-halves` is what the author's program does in place of `label-halves`.
"""
