"""Labelled samples as arrays, validated and scaled when they are loaded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

BYTE_MIDDLE = 127
"""Unsigned bytes beyond this use the full range up to 255."""
SMALL_SCALE = 16
"""Unsigned bytes up to this are a scale of their own, such as truth values or 16 grey levels."""
MOST_CHANNELS = 4
"""An axis of at most this size holds channels."""


class DataError(ValueError):
    """Data that cannot be found, read, or used for classification."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Labelled samples for classification.

    Attributes:
        name: name of the data set.
        inputs: (samples, *shape) float32; loaders scale to [0, 1], and images are (channels,
            height, width).
        targets: (samples,) int64 class labels, 0 to `num_classes` - 1.
        num_classes: number of classes; classes may be empty.
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

    def __post_init__(self) -> None:
        if self.inputs.dtype != np.float32 or self.targets.dtype != np.int64:
            raise DataError(
                f"dataset {self.name!r}: inputs must be float32 and targets int64, got "
                f"{self.inputs.dtype} and {self.targets.dtype} (Dataset.from_arrays converts)"
            )
        _check_shapes(self.name, self.inputs, self.targets)
        if not np.isfinite(self.inputs).all():
            raise DataError(f"dataset {self.name!r}: inputs must be finite, got NaN or inf")
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
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self.inputs.shape[1:])

    @classmethod
    def from_arrays(
        cls,
        name: str,
        train: tuple[ArrayLike, ArrayLike],
        test: tuple[ArrayLike, ArrayLike] | None = None,
        source: str = "arrays",
        *,
        highest: float | None = None,
        channels: Literal["first", "last"] | None = None,
    ) -> Dataset:
        """Validate and scale raw arrays.

        Inputs are scaled to [0, 1]: unsigned 8-bit integers that exceed 127 are divided by 255,
        floats within [0, 1] are unchanged, all others are min-max scaled over the whole set, with a
        warning for 8-bit integers that end between 17 and 127.

        Images become (channels, height, width): (samples, height, width) gets a channel axis. Of
        four axes the second is that of channels if its size is at most 4 or the others are equal,
        else the last one by the same rule.

        Args:
            name: name of the data set.
            train: inputs (samples, ...) and integer labels (samples,).
            test: inputs and labels of the original test set, if any.
            source: origin of the data.
            highest: inputs are divided by this number, such as 255; by default see above.
            channels: where the channels of images are; by default see above.

        Raises:
            DataError: inputs are masked, not finite or differ in shape, labels are not the integers
                0 to k - 1 with each of them present, inputs and labels differ in length, inputs
                are not in 0 to `highest`, or the axis of channels is uncertain.
        """
        given = [train] if test is None else [train, test]
        if any(np.ma.is_masked(array) for pair in given for array in pair):
            raise DataError(f"dataset {name!r}: arrays must not be masked; leave out such samples")
        parts = [(np.asarray(x), np.asarray(y)) for x, y in given]
        for (inputs, targets), part in zip(parts, ("training", "test"), strict=False):
            _check_part(f"{name!r} ({part} part)", inputs, targets)
        shapes = {inputs.shape[1:] for inputs, _ in parts}
        if len(shapes) > 1 or len({inputs.dtype for inputs, _ in parts}) > 1:
            raise DataError(
                f"dataset {name!r}: training and test inputs must agree in shape and type, got "
                f"{[(x.shape[1:], str(x.dtype)) for x, _ in parts]}"
            )
        targets = np.concatenate([y for _, y in parts]).astype(np.int64)
        raw = np.concatenate([x for x, _ in parts])
        return cls(
            name=name,
            inputs=_channels_first(name, _scaled(name, raw, highest), channels),
            targets=targets,
            num_classes=_num_classes(name, targets),
            num_native_test=0 if test is None else len(parts[1][1]),
            source=source,
        )


def joined(name: str, parts: Mapping[str, Dataset]) -> Dataset:
    """One data set of several domains, such as Digits-Five; original test samples come last.

    Args:
        name: name of the data set.
        parts: samples by name of the domain, of one input shape and the same classes.

    Raises:
        DataError: there is no domain, or they differ in input shape or number of classes.
    """
    shapes = {(part.input_shape, part.num_classes) for part in parts.values()}
    if len(shapes) != 1:
        raise DataError(
            f"dataset {name!r}: domains must agree in input shape and number of classes, got "
            f"{', '.join(f'{key} {part!r}' for key, part in parts.items()) or 'none'}"
        )
    kept = [len(part) - part.num_native_test for part in parts.values()]
    chosen = [
        *((part, slice(0, first)) for part, first in zip(parts.values(), kept, strict=True)),
        *((part, slice(first, None)) for part, first in zip(parts.values(), kept, strict=True)),
    ]
    numbers = [*range(len(parts)), *range(len(parts))]
    return Dataset(
        name=name,
        inputs=np.concatenate([part.inputs[rows] for part, rows in chosen]),
        targets=np.concatenate([part.targets[rows] for part, rows in chosen]),
        num_classes=next(iter(parts.values())).num_classes,
        num_native_test=sum(part.num_native_test for part in parts.values()),
        source="; ".join(part.source for part in parts.values()),
        domains=np.concatenate(
            [
                np.full(len(part.targets[rows]), number, dtype=np.int64)
                for number, (part, rows) in zip(numbers, chosen, strict=True)
            ]
        ),
        domain_names=tuple(parts),
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
        )
    if inputs.dtype.kind == "f" and not np.isfinite(inputs).all():
        raise DataError(f"dataset {what}: inputs must be finite, got NaN or inf")


def _num_classes(name: str, targets: NDArray[np.int64]) -> int:
    present = np.unique(targets)
    if not np.array_equal(present, np.arange(len(present))):
        shown = ", ".join(map(str, present[:6])) + (", ..." if len(present) > 6 else "")
        raise DataError(
            f"dataset {name!r}: labels must be the integers 0 to k - 1, each of them present, "
            f"got {len(present)} distinct ones: {shown}"
        )
    return len(present)


def _scaled(name: str, inputs: NDArray[np.generic], highest: float | None) -> NDArray[np.float32]:
    low, high = float(np.min(inputs)), float(np.max(inputs))
    if highest is None and inputs.dtype == np.uint8:
        highest = 255 if high > BYTE_MIDDLE else None
        if highest is None and high > SMALL_SCALE:
            warnings.warn(
                f"dataset {name!r}: 8-bit inputs end at {high:.0f}, which is taken for their "
                "scale; pass highest=255, or floats from 0 to 1, if they are dark images",
                stacklevel=3,
            )
    if highest is not None:
        if not (highest > 0 and low >= 0 and high <= highest):
            raise DataError(
                f"dataset {name!r}: inputs must lie in 0 to highest={highest}, got {low} to {high}"
            )
        return inputs.astype(np.float32) / np.float32(highest)
    if inputs.dtype.kind in "bf" and low >= 0 and high <= 1:
        return inputs.astype(np.float32)
    spread = high - low or 1.0
    return ((inputs.astype(np.float64) - low) / spread).astype(np.float32)


def _channels_first(
    name: str, inputs: NDArray[np.float32], channels: Literal["first", "last"] | None
) -> NDArray[np.float32]:
    if inputs.ndim == 3:
        return inputs[:, None]
    if inputs.ndim == 4 and (channels or _channel_axis(name, inputs.shape)) == "last":
        return np.ascontiguousarray(np.moveaxis(inputs, 3, 1))
    return inputs


def _channel_axis(name: str, shape: tuple[int, ...]) -> Literal["first", "last"]:
    _, first, middle, last = shape
    if first <= MOST_CHANNELS or middle == last:
        return "first"
    if last <= MOST_CHANNELS or first == middle:
        return "last"
    raise DataError(
        f"dataset {name!r}: images of shape {shape[1:]} have their channels first or last, which "
        "cannot be told from the sizes; pass channels='first' or 'last'"
    )
