"""Samples of data sets of other libraries, as inputs and targets.

A torch data set or data loader, a data set of Hugging Face, or a data frame of pandas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

TARGETS = ("label", "labels", "target", "targets", "y")
Columns = str | Sequence[str] | None


def samples_of(
    source: Any,  # noqa: ANN401 - of libraries that may not be installed
    inputs: Columns = None,
    targets: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and targets of all samples of a source, in its order.

    Args:
        source: a map-style torch data set of pairs, a data loader of batches of pairs, or a data
            set or data frame with columns.
        inputs: column of the inputs, or several, which become one axis; by default all but that of
            the targets.
        targets: column of the targets; by default the only one among `label`, `labels`, `target`,
            `targets` and `y`.

    Raises:
        TypeError: the source is none of these, has no length, so that it might have no end, or its
            samples are no pairs.
        ValueError: there is no sample or no such column, or samples differ in shape.
    """
    kind = type(source).__name__
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return _of_columns(source, inputs, targets)
    if inputs is not None or targets is not None:
        raise TypeError(f"inputs and targets name columns, which a {kind} does not have")
    if isinstance(source, dict):
        raise TypeError(f"data must be one split with its samples, got splits {list(source)[:5]}")
    try:
        length = len(source)
    except TypeError:
        raise TypeError(
            f"data must have a length, without which {kind} might have no end; give a part of it, "
            "such as list(itertools.islice(data, 1000))"
        ) from None
    if not length:
        raise ValueError("data must hold at least one sample, got none")
    if hasattr(source, "batch_size") and hasattr(source, "dataset"):
        batches = [_pair(batch, kind) for batch in source]
        x, y = zip(*batches, strict=True)
        return _joined(x, np.concatenate), _joined(y, np.concatenate)
    x, y = zip(*_pairs(source, length, kind), strict=True)
    return _joined(x, np.stack), _joined(y, np.stack)


def _pairs(source: Any, length: int, kind: str) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    for index in range(length):
        try:
            sample = source[index]
        except (TypeError, KeyError, IndexError) as error:
            raise TypeError(
                f"data must give its samples by whole numbers from 0 to {length - 1}, but {kind} "
                f"raised {type(error).__name__} at {index}: {error}"
            ) from error
        yield _pair(sample, kind)


def _pair(sample: Any, kind: str) -> tuple[Any, Any]:  # noqa: ANN401
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        raise TypeError(
            f"data must be pairs of an input and a target, got {type(sample).__name__} from {kind}"
        )
    return _array(sample[0]), np.asarray(sample[1])


def _array(sample: Any) -> NDArray[Any]:  # noqa: ANN401 - tensors, arrays, images
    """A sample as an array; the channels of an image of Pillow come first."""
    array = np.asarray(sample)
    is_colour_image = hasattr(sample, "getbands") and array.ndim == 3
    return np.moveaxis(array, 2, 0) if is_colour_image else array


def _joined(arrays: Sequence[NDArray[Any]], join: Any) -> NDArray[Any]:  # noqa: ANN401
    shapes = sorted({array.shape[join is np.concatenate :] for array in arrays})
    if len(shapes) > 1:
        raise ValueError(f"samples must agree in shape, got {shapes[:3]}; pad or crop them before")
    joined: NDArray[Any] = join(arrays)
    return joined


def _of_columns(
    source: Any,  # noqa: ANN401
    inputs: Columns,
    targets: str | None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    names = list(source.column_names if hasattr(source, "column_names") else source.columns)
    if targets is None:
        usual = [name for name in TARGETS if name in names]
        if len(usual) != 1:
            raise ValueError(f"targets must name the column of the targets, one of {names}")
        targets = usual[0]
    chosen = [inputs] if isinstance(inputs, str) else inputs
    chosen = [name for name in names if name != targets] if chosen is None else list(chosen)
    for name in (*chosen, targets):
        if name not in names:
            raise ValueError(f"data must have a column {name!r}, got {names}")
    x = [_column(source, name) for name in chosen]
    return (x[0] if len(x) == 1 else np.stack(x, axis=1)), _column(source, targets)


def _column(source: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    return _joined([_array(value) for value in source[name]], np.stack)
