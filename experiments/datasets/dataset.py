"""Labelled samples as arrays, validated and scaled when they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.runtime import is_whole
from experiments.datasets.arrays import (
    Channels,
    Reading,
    channels_first,
    is_stated,
    scaled_inputs,
)
from experiments.datasets.attributes import (
    check_all_finite,
    check_arrays,
    check_range,
    check_shapes,
    names_of_classes,
    numbered,
    sets_of_labels,
)
from experiments.datasets.errors import DataError
from experiments.datasets.labels import (
    UNLABELLED,
    Labels,
    as_integers,
    number_of_classes,
    numbered_labels,
)
from experiments.datasets.parts import arrays_of


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Labelled samples for classification.

    Attributes:
        name: name of the data set.
        inputs: (samples, *shape) float32; loaders of images scale to [0, 1], and images are
            (channels, height, width).
        targets: (samples,) int64 class labels, 0 to `num_classes` - 1.
        num_classes: number of classes; classes may be empty.
        label_sets: (classes, labels) bool labels of each class, where samples have any number of
            labels: a class is then a set of labels that occurs, by which samples are divided among
            clients. None where each sample is of one class.
        num_native_test: number of samples at the end that form the original test set.
        source: origin of the data, for reports.
        writers: (samples,) int64 writer of each sample, None if unknown. They may be given as whole
            numbers of any kind, such as a list, or as names, which are numbered in their order.
        writer_names: names of the writers, by number; empty if unknown.
        domains: (samples,) int64 source domain of each sample, such as the data set of a digit in
            Digits-Five; None where there is one. They may be given as writers are.
        domain_names: names of the domains, by number; of domains that are given by their names, the
            sorted ones by default.
        class_names: names of the classes, or of the labels where samples have any number of them,
            by number; None if unknown.

    Raises:
        DataError: an array has another dtype or shape, inputs are not finite, `num_classes` is no
            whole number from 1, labels or `num_native_test` are out of range, there are not as many
            `class_names` as classes, or writers or domains are of none of their names.
    """

    name: str
    inputs: NDArray[np.float32]
    targets: NDArray[np.int64]
    num_classes: int
    num_native_test: int = 0
    source: str = ""
    writers: NDArray[np.int64] | None = None
    writer_names: tuple[str, ...] = ()
    domains: NDArray[np.int64] | None = None
    domain_names: tuple[str, ...] = ()
    label_sets: NDArray[np.bool_] | None = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_arrays(self.name, self.inputs, self.targets)
        if not is_whole(self.num_classes, least=1):
            raise DataError(
                f"dataset {self.name!r}: num_classes must be a whole number, at least 1, got "
                f"{self.num_classes!r}"
            )
        check_shapes(self.name, self.inputs, self.targets)
        check_all_finite(repr(self.name), self.inputs)
        check_range(self.name, self.targets, self.num_classes)
        if not is_whole(self.num_native_test, 0) or self.num_native_test > len(self.targets):
            raise DataError(
                f"dataset {self.name!r}: num_native_test must be 0 to {len(self.targets)}, got "
                f"{self.num_native_test!r}"
            )
        self._number("writer")
        self._number("domain")
        sets = sets_of_labels(self.name, self.label_sets, self.num_classes)
        object.__setattr__(self, "label_sets", sets)
        names = names_of_classes(self.name, self.class_names, self.num_outputs)
        object.__setattr__(self, "class_names", names)

    def _number(self, kind: Literal["writer", "domain"]) -> None:
        """Number writers or domains, with their names."""
        given, names = getattr(self, f"{kind}s"), getattr(self, f"{kind}_names")
        sizes = len(self.targets) - self.num_native_test, self.num_native_test
        numbers, names = numbered(self.name, kind, given, names, sizes)
        if kind == "domain" and numbers is not None and not names:
            raise DataError(
                f"dataset {self.name!r}: domains that are numbers must have domain_names, one for "
                "each number from 0; domains=[*map(str, domains)] makes names of the numbers"
            )
        object.__setattr__(self, f"{kind}s", numbers)
        object.__setattr__(self, f"{kind}_names", names)

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name}: {len(self)} samples of {self.input_shape}, "
            f"{self.num_classes} classes, {self.num_native_test} of them native test)"
        )

    @property
    def num_outputs(self) -> int:
        """Number of labels, or of classes where samples are of one each."""
        return self.num_classes if self.label_sets is None else self.label_sets.shape[1]

    @property
    def labels_of_classes(self) -> tuple[str, ...]:
        """Names by which samples of one class each can be labelled; empty if there are none."""
        names = self.class_names or ()
        are_labels = self.label_sets is None and len(set(names)) == len(names)
        return names if are_labels else ()

    def labelled(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Targets of samples (samples,) of classes: these, or (samples, labels) of 0 and 1."""
        return classes if self.label_sets is None else self.label_sets[classes].astype(np.int64)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self.inputs.shape[1:])

    @classmethod
    def from_arrays(  # noqa: PLR0913 - keywords with defaults
        cls,
        name: str,
        train: tuple[ArrayLike, ArrayLike],
        test: tuple[ArrayLike, ArrayLike] | None = None,
        source: str = "arrays",
        *,
        highest: float | None = None,
        scaled: bool = True,
        channels: Channels | None = None,
        num_classes: int | None = None,
    ) -> Dataset:
        """Validate and scale raw arrays.

        By default inputs are scaled to [0, 1]: unsigned 8-bit integers that exceed 127 are divided
        by 255, and so are images of unsigned 16-bit integers that exceed 32,767 by 65,535; floats
        within [0, 1] are unchanged, but for rounding, and all others are min-max scaled over the
        whole set. A warning tells where that may not be meant: of 8 and 16 bits that end above 16,
        but below nine tenths of their highest value; of other inputs that are not whole numbers
        from 0 to at most 16, and do not run from 0 to 255 or 65,535; and of tables of other
        integers than 0 and 1, which may be the numbers of words. `highest` and `scaled` say what
        is meant.

        Images become (channels, height, width): (samples, height, width) gets a channel axis. Of
        four axes the second or the last is that of channels, whichever has more of two signs: its
        size is at most 4, and the other two axes of the image are equal. Where both have as many
        it is the second, and a warning tells unless all three are equal; `channels` says what is
        meant. Samples of sequences, (samples, time, features), keep their axes by
        `channels="none"`.

        Args:
            name: name of the data set.
            train: inputs (samples, ...), or a list of images of Pillow, and integer labels
                (samples,) or (samples, 1), which may be Booleans or floating-point numbers without
                fractions; or rows of 0 and 1 (samples, labels), where any number of labels may be
                present. Rows of which each in all parts is one-hot are classes. Columns of data
                frames are in the order of this part.
            test: inputs and labels of the original test set, if any.
            source: origin of the data.
            highest: inputs are divided by this number, such as 255; by default see above.
            scaled: whether inputs are scaled; otherwise they are kept as they are, such as the
                numbers of words, or features of mean 0 and variance 1.
            channels: where the channels of images are, or `none` where samples are no images; by
                default see above. Images of Pillow have their own.
            num_classes: number of classes of a published data set, some of which may be absent
                here; by default as many as there are, or as one-hot rows have columns. Of no use
                where samples have any number of labels.

        Raises:
            DataError: inputs or labels are masked, missing or not finite, or differ in shape, names
                of columns or, in a list, a type that says how images are scaled; labels are not the
                integers 0 to k - 1 with each of them present (or below `num_classes`), inputs and
                labels differ in length, inputs are not in 0 to `highest`, which takes inputs that
                are scaled, parts are of different scales, such as bytes and numbers from 0 to 1,
                or inputs are too large for float32.
        """
        parts = {"training": train} if test is None else {"training": train, "test": test}
        reading: Reading = {"highest": highest, "scaled": scaled, "channels": channels}
        return of_parts(name, parts, source, num_classes, reading)


def of_parts(
    name: str,
    parts: Mapping[str, object],
    source: str,
    num_classes: int | None,
    reading: Reading,
    class_names: tuple[str, ...] | None = None,
) -> Dataset:
    """A data set of training samples, and perhaps validation and test samples.

    Args:
        name: name of the data set.
        parts: inputs and labels of `training`, `validation` and `test`, in this order; samples of
            `test` form the original test set.
        source: origin of the data.
        num_classes: as of `experiments.datasets.Dataset.from_arrays`.
        reading: its `highest`, `scaled` and `channels`.
        class_names: names of all classes, if they are known, of which some may be absent; where
            labels exceed them, they are left out with a warning.

    Raises:
        DataError: as of `experiments.datasets.Dataset.from_arrays`.
    """
    pairs, known = arrays_of(name, parts, is_stated(reading))
    labels = numbered_labels(name, {part: y for part, (_, y) in pairs.items()})
    samples = {part: x for part, (x, _) in pairs.items()}
    for part, inputs in samples.items():
        _check_part(f"{name!r} ({part} part)", inputs, labels.by_part[part])
    shapes = {part: x.shape[1:] for part, x in samples.items()}
    if len(set(shapes.values())) > 1:
        raise DataError(
            f"dataset {name!r}: {' and '.join(shapes)} inputs must agree in shape, got "
            f"{' and '.join(map(str, shapes.values()))}"
        )
    targets = np.concatenate([*labels.by_part.values()]).astype(np.int64)
    try:
        scaled = scaled_inputs(f"dataset {name!r}", samples, reading)
        asked = reading.get("channels")
        channels = asked if asked == "none" else known or asked
        inputs = channels_first(f"dataset {name!r}", scaled, channels)
    except ValueError as error:
        raise DataError(f"dataset {name!r}: {error}") from None
    class_names = _fitting_names(name, labels, targets, class_names)
    if class_names is not None:
        num_classes = len(class_names)
    if num_classes is None or labels.label_sets is not None:
        num_classes = labels.num_classes or number_of_classes(name, targets)
    return Dataset(
        name=name,
        inputs=inputs,
        targets=targets,
        num_classes=num_classes,
        label_sets=labels.label_sets,
        num_native_test=len(labels.by_part.get("test", ())),
        source=source,
        class_names=class_names,
    )


def _fitting_names(
    name: str, labels: Labels, targets: NDArray[np.int64], names: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Names of classes, or of columns of rows; None, with a warning, if they are of other ones."""
    from bcfl.data import fitting_names

    width = labels.num_classes if labels.label_sets is None else labels.label_sets.shape[1]
    remedy = "dataclasses.replace(dataset, class_names=[...]) gives others"
    return fitting_names(f"dataset {name!r}", names, int(targets.max()), width, remedy)


def _check_part(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    check_shapes(what, inputs, targets)
    if targets.dtype.kind not in "ui":
        raise DataError(
            f"dataset {what}: labels must be integers 0 to k - 1, got type {targets.dtype}"
            f"{as_integers(targets)}"
        )
    if targets.dtype.kind == "i" and (targets == UNLABELLED).all():
        another = '; give another one as test, such as test=data["validation"] of Hugging Face'
        raise DataError(
            f"dataset {what}: all labels are -1, as of samples that are published without "
            f"labels{another * what.endswith('(test part)')}"
        )
