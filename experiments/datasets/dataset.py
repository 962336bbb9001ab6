"""Labelled samples as arrays, validated and scaled when they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.runtime import check_finite, is_whole
from experiments.datasets.arrays import Channels, Reading, channels_first, scaled_inputs
from experiments.datasets.errors import DataError
from experiments.datasets.labels import as_integers, class_numbers, number_of_classes
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
        writers: (samples,) int64 writer of each sample, None if unknown.
        domains: (samples,) int64 source domain of each sample, such as the data set of a digit in
            Digits-Five; None where there is one.
        domain_names: names of the domains, by number.

    Raises:
        DataError: an array has another dtype or shape, inputs are not finite, `num_classes` is no
            whole number from 1, or labels or `num_native_test` are out of range.
    """

    name: str
    inputs: NDArray[np.float32]
    targets: NDArray[np.int64]
    num_classes: int
    num_native_test: int = 0
    source: str = ""
    writers: NDArray[np.int64] | None = None
    domains: NDArray[np.int64] | None = None
    domain_names: tuple[str, ...] = ()
    label_sets: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if self.inputs.dtype != np.float32 or self.targets.dtype != np.int64:
            raise DataError(
                f"dataset {self.name!r}: inputs must be float32 and targets int64, got "
                f"{self.inputs.dtype} and {self.targets.dtype} (Dataset.from_arrays converts)"
            )
        if not is_whole(self.num_classes, least=1):
            raise DataError(
                f"dataset {self.name!r}: num_classes must be a whole number, at least 1, got "
                f"{self.num_classes!r}"
            )
        _check_shapes(self.name, self.inputs, self.targets)
        _check_finite(repr(self.name), self.inputs)
        if self.targets.min() < 0 or self.targets.max() >= self.num_classes:
            raise DataError(
                f"dataset {self.name!r}: targets must be 0 to {self.num_classes - 1}, got "
                f"{self.targets.min()} to {self.targets.max()}"
            )
        if not 0 <= self.num_native_test <= len(self.targets):
            raise DataError(
                f"dataset {self.name!r}: num_native_test must be 0 to {len(self.targets)}, got "
                f"{self.num_native_test}"
            )

        _check_typed(self.name, "writers", self.writers, np.int64, self.targets.shape)
        if self.label_sets is not None:
            shape = (self.num_classes, *(self.label_sets.shape[1:2] or (1,)))
            _check_typed(self.name, "label_sets", self.label_sets, np.bool_, shape)
        _check_domains(self.name, self.domains, self.domain_names, len(self.targets))

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
        four axes the second is that of channels if its size is at most 4 or the others are equal,
        else the last one by the same rule. Samples of sequences, (samples, time, features), keep
        their axes by `channels="none"`.

        Args:
            name: name of the data set.
            train: inputs (samples, ...) and integer labels (samples,) or (samples, 1), which may be
                Booleans or floating-point numbers without fractions; or rows of 0 and 1 (samples,
                labels), where any number of labels may be present. Rows of which each in all parts
                is one-hot are classes. Columns of data frames are in the order of this part.
            test: inputs and labels of the original test set, if any.
            source: origin of the data.
            highest: inputs are divided by this number, such as 255; by default see above.
            scaled: whether inputs are scaled; otherwise they are kept as they are, such as the
                numbers of words, or features of mean 0 and variance 1.
            channels: where the channels of images are, or `none` where samples are no images; by
                default see above.
            num_classes: number of classes of a published data set, some of which may be absent
                here; by default as many as there are, or as one-hot rows have columns. Of no use
                where samples have any number of labels.

        Raises:
            DataError: inputs are masked, not finite or differ in shape or names of columns, labels
                are not the integers 0 to k - 1 with each of them present (or below `num_classes`),
                inputs and labels differ in length, inputs are not in 0 to `highest`, which takes
                inputs that are scaled, parts are of different scales, such as bytes and numbers
                from 0 to 1, kept whole numbers are too large for float32, or the axis of channels
                is uncertain.
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
) -> Dataset:
    """A data set of training samples, and perhaps validation and test samples.

    Args:
        name: name of the data set.
        parts: inputs and labels of `training`, `validation` and `test`, in this order; samples of
            `test` form the original test set, and a validation part without samples is left out.
        source: origin of the data.
        num_classes: as of `experiments.datasets.Dataset.from_arrays`.
        reading: its `highest`, `scaled` and `channels`.

    Raises:
        DataError: as of `experiments.datasets.Dataset.from_arrays`.
    """
    pairs = arrays_of(name, parts)
    if "validation" in pairs and not any(map(len, pairs["validation"])):
        del pairs["validation"]
    labels, label_sets, width = class_numbers(name, {part: y for part, (_, y) in pairs.items()})
    samples = {part: x for part, (x, _) in pairs.items()}
    for part, inputs in samples.items():
        _check_part(f"{name!r} ({part} part)", inputs, labels[part])
    shapes = {part: x.shape[1:] for part, x in samples.items()}
    if len(set(shapes.values())) > 1:
        raise DataError(
            f"dataset {name!r}: {' and '.join(shapes)} inputs must agree in shape, got "
            f"{' and '.join(map(str, shapes.values()))}"
        )
    targets = np.concatenate([*labels.values()]).astype(np.int64)
    try:
        scaled = scaled_inputs(f"dataset {name!r}", samples, reading)
        inputs = channels_first(scaled, reading.get("channels"))
    except ValueError as error:
        raise DataError(f"dataset {name!r}: {error}") from None
    if num_classes is None or label_sets is not None:
        num_classes = width or number_of_classes(name, targets)
    return Dataset(
        name=name,
        inputs=inputs,
        targets=targets,
        num_classes=num_classes,
        label_sets=label_sets,
        num_native_test=len(labels.get("test", ())),
        source=source,
    )


def _check_typed(
    name: str, what: str, values: NDArray[Any] | None, dtype: type, shape: tuple[int, ...]
) -> None:
    """Check type and shape of an array that may be None."""
    if values is not None and (values.dtype != dtype or values.shape != shape):
        raise DataError(
            f"dataset {name!r}: {what} must be {np.dtype(dtype)} of shape {shape}, got "
            f"{values.dtype} of shape {values.shape}"
        )


def _check_domains(
    name: str, domains: NDArray[np.int64] | None, names: tuple[str, ...], samples: int
) -> None:
    if domains is None:
        return
    if domains.shape != (samples,) or not np.isin(domains, np.arange(len(names))).all():
        raise DataError(
            f"dataset {name!r}: domains must be one number per sample, ({samples},), below the "
            f"{len(names)} domain_names, got {domains.shape}"
        )


def _check_shapes(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    if inputs.ndim < 2 or targets.ndim != 1 or len(inputs) != len(targets):
        raise DataError(
            f"dataset {what}: inputs must be (samples, ...) and targets (samples,) of the same "
            f"length, got {inputs.shape} and {targets.shape}"
        )
    if inputs.size == 0:
        raise DataError(f"dataset {what}: there must be at least one sample, got {inputs.shape}")


def _check_part(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    _check_shapes(what, inputs, targets)
    if inputs.dtype.kind not in "buif":
        raise DataError(f"dataset {what}: inputs must be real numbers, got {inputs.dtype}")
    if targets.dtype.kind not in "ui":
        raise DataError(
            f"dataset {what}: labels must be integers 0 to k - 1, got type {targets.dtype}"
            f"{as_integers(targets)}"
        )
    if targets.dtype.kind == "i" and (targets == -1).all():
        raise DataError(
            f"dataset {what}: all labels are -1, as of test sets that are published without "
            'labels; give another one as test, such as test=data["validation"] of Hugging Face'
        )
    _check_finite(what, inputs)


def _check_finite(what: str, inputs: NDArray[Any]) -> None:
    try:
        check_finite(inputs, "inputs")
    except ValueError as error:
        raise DataError(f"dataset {what}: {error}") from None
