"""Labelled samples as arrays, validated and scaled when they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.runtime import check_finite
from experiments.datasets.arrays import Channels, channels_first, scaled_inputs

Pair = tuple[NDArray[Any], NDArray[Any]]
"""Inputs and labels."""
PARTS = ("training", "test")
NUMBERED = (
    "number the labels `y` of training and test samples together: "
    "`classes, y = numpy.unique(y, return_inverse=True)`"
)
"""What to do about labels that are text, or integers with gaps."""


class DataError(ValueError):
    """Data that cannot be found, read, or used for classification."""


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
        DataError: an array has another dtype or shape, inputs are not finite, or labels or
            `num_native_test` are out of range.
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

        if self.writers is not None and self.writers.shape != self.targets.shape:
            raise DataError(
                f"dataset {self.name!r}: writers must be one per sample, "
                f"{self.targets.shape}, got {self.writers.shape}"
            )
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
            train: inputs (samples, ...) and integer labels (samples,) or (samples, 1), or rows of
                0 and 1 (samples, labels), where any number of labels may be present.
            test: inputs and labels of the original test set, if any.
            source: origin of the data.
            highest: inputs are divided by this number, such as 255; by default see above.
            scaled: whether inputs are scaled; otherwise they are kept as they are, such as the
                numbers of words, or features of mean 0 and variance 1.
            channels: where the channels of images are, or `none` where samples are no images; by
                default see above.
            num_classes: number of classes of a published data set, some of which may be absent
                here; by default as many as there are.

        Raises:
            DataError: inputs are masked, not finite or differ in shape, labels are not the integers
                0 to k - 1 with each of them present (or below `num_classes`), inputs and labels
                differ in length, inputs are not in 0 to `highest`, which takes inputs that are
                scaled, kept whole numbers are too large for float32, or the axis of channels is
                uncertain.
        """
        given = [_pair(name, pair) for pair in ([train] if test is None else [train, test])]
        if any(np.ma.is_masked(array) for pair in given for array in pair):
            raise DataError(f"dataset {name!r}: arrays must not be masked; leave out such samples")
        parts = [(_array(name, "inputs", x), _array(name, "labels", y)) for x, y in given]
        for (inputs, targets), part in zip(parts, PARTS, strict=False):
            _check_inputs(f"{name!r} ({part} part)", inputs, targets)
        parts = [(inputs, _one_column(targets)) for inputs, targets in parts]
        label_sets = None
        if parts[0][1].ndim == 2 and parts[0][1].shape[1] > 1:
            label_sets, parts = _of_label_sets(name, parts)
        for (inputs, targets), part in zip(parts, PARTS, strict=False):
            _check_part(f"{name!r} ({part} part)", inputs, targets)
        shapes = {inputs.shape[1:] for inputs, _ in parts}
        if len(shapes) > 1:
            raise DataError(
                f"dataset {name!r}: training and test inputs must agree in shape, got "
                f"{' and '.join(str(x.shape[1:]) for x, _ in parts)}"
            )
        targets = np.concatenate([y for _, y in parts]).astype(np.int64)
        raw = np.concatenate([x for x, _ in parts])
        try:
            inputs = channels_first(
                scaled_inputs(f"dataset {name!r}", raw, highest, scaled), channels
            )
        except ValueError as error:
            raise DataError(f"dataset {name!r}: {error}") from None
        return cls(
            name=name,
            inputs=inputs,
            targets=targets,
            num_classes=(label_sets is None and num_classes) or _num_classes(name, targets),
            label_sets=label_sets,
            num_native_test=0 if test is None else len(parts[1][1]),
            source=source,
        )


def check_labels(where: str, labels: NDArray[Any], num_classes: int | None, first: int = 0) -> None:
    """Check that integer labels are those of a published data set.

    Args:
        where: file, and array in it, for the message.
        labels: (samples,) or (samples, 1) labels.
        num_classes: number of classes; None if any is allowed.
        first: lowest label.

    Raises:
        DataError: a label is out of range.
    """
    if num_classes is None or labels.dtype.kind not in "iu":
        return
    outside = labels[(labels < first) | (labels >= first + num_classes)]
    if outside.size:
        raise DataError(
            f"{where}: labels must be {first} to {first + num_classes - 1}, got {outside.flat[0]}"
        )


def domains_in_words(names: Sequence[str]) -> str:
    """Such as `domain usps` or `domains usps, svhn`."""
    return f"{'domain' if len(names) == 1 else 'domains'} {', '.join(names)}"


def whole_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as whole numbers, where that loses nothing; others as they are."""
    is_whole = labels.dtype.kind in "bf" and bool(np.all(labels == np.trunc(labels)))
    return labels.astype(np.int64) if is_whole else labels


def concatenated(name: str, pairs: Sequence[Pair]) -> Pair:
    """Inputs and labels of several parts, such as training and validation samples, in one.

    Args:
        name: name of the data set, for the message.
        pairs: inputs and labels of each part.

    Raises:
        DataError: they differ in shape.
    """
    if len({(x.shape[1:], y.shape[1:]) for x, y in pairs}) > 1:
        shown = ", ".join(f"{x.shape[1:]} with labels {y.shape[1:]}" for x, y in pairs)
        raise DataError(f"dataset {name!r}: samples of all splits must agree in shape, got {shown}")
    if len(pairs) == 1:
        return pairs[0]
    inputs, labels = zip(*pairs, strict=True)
    return np.concatenate(inputs), np.concatenate(labels)


def _pair(name: str, given: object) -> Sequence[ArrayLike]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return given
    raise DataError(
        f"dataset {name!r}: samples must be a pair (inputs, labels), got a {type(given).__name__}"
        + (f" of length {len(given)}" if isinstance(given, tuple | list) else "")
    )


def _array(name: str, what: str, values: ArrayLike) -> NDArray[Any]:
    if what == "inputs" and hasattr(values, "iloc"):
        values = _of_frame(name, values)
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(
            f"dataset {name!r}: {what} must be one array, of samples that agree in shape, got a "
            f"{type(values).__name__} whose parts differ in shape"
        ) from None


def _of_frame(name: str, frame: Any) -> ArrayLike:  # noqa: ANN401 - of pandas
    """The columns of a data frame as one array, as those of clients."""
    from bcfl.data import without_frame

    try:
        columns: ArrayLike = without_frame(frame)
    except (TypeError, ValueError) as error:
        raise DataError(f"dataset {name!r}: {error}") from None
    return columns


def _one_column(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels (samples, 1), as Keras and MedMNIST have them, as (samples,)."""
    return labels[:, 0] if labels.shape[1:] == (1,) else labels


def _of_label_sets(
    name: str, parts: list[tuple[NDArray[Any], NDArray[Any]]]
) -> tuple[NDArray[np.bool_], list[tuple[NDArray[Any], NDArray[Any]]]]:
    """The sets of labels that occur, and the parts with their numbers as targets."""
    labels = [targets for _, targets in parts]
    widths = {targets.shape[1:] for targets in labels}
    if len(widths) > 1 or not all(np.isin(targets, (0, 1)).all() for targets in labels):
        raise DataError(f"dataset {name!r}: labels must be rows of 0 and 1, as many in each part")
    sets, numbers = np.unique(np.concatenate(labels).astype(bool), axis=0, return_inverse=True)
    split = np.split(numbers.reshape(-1).astype(np.int64), np.cumsum([len(y) for y in labels])[:-1])
    return sets, [(inputs, y) for (inputs, _), y in zip(parts, split, strict=True)]


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


def _check_inputs(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    """Check that there is an axis of features."""
    if inputs.ndim == 1 and len(inputs):
        swapped = f"; or are they swapped with the labels, of shape {targets.shape}?"
        raise DataError(
            f"dataset {what}: inputs must be (samples, ...) with at least one axis of features, "
            f"got {inputs.shape}; one number per sample becomes a feature by "
            f"`inputs.reshape(-1, 1)`{swapped * (targets.ndim > 1)}"
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
            f"{_as_integers(targets)}"
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


def _as_integers(labels: NDArray[np.generic]) -> str:
    """What to do about labels that are no integers."""
    kind = labels.dtype.kind
    if kind == "b" or (kind not in "cMm" and _are_whole(labels)):
        numbers = "" if kind in "bf" else ".astype(float)"
        return f"; give `y{numbers}.astype(int)` in place of such labels `y`"
    if labels.dtype.kind == "f":
        return "; numbers to predict (regression) are for bcfl.ClientData.from_arrays in Python"
    return f"; {NUMBERED}"


def _are_whole(labels: NDArray[Any]) -> bool:
    """Whether floating-point numbers, or text of numbers, are integers."""
    try:
        numbers = labels.astype(float)
    except (TypeError, ValueError):
        return False
    return bool((np.isfinite(numbers) & (numbers == np.round(numbers))).all())


def _from_zero(present: NDArray[np.int64]) -> str:
    """What to do about labels that are not 0 to k - 1."""
    if np.array_equal(present, np.arange(1, len(present) + 1)):
        return "classes are counted from 0: give `y - 1` in place of such labels `y`, in all parts"
    return NUMBERED


def _num_classes(name: str, targets: NDArray[np.int64]) -> int:
    present = np.unique(targets)
    if not np.array_equal(present, np.arange(len(present))):
        shown = ", ".join(map(str, present[:6])) + (", ..." if len(present) > 6 else "")
        raise DataError(
            f"dataset {name!r}: labels must be the integers 0 to k - 1, each of them present, "
            f"got {len(present)} distinct ones: {shown}; {_from_zero(present)}"
        )
    return len(present)
