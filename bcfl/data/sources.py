"""Samples of data sets of other libraries, as inputs and targets.

A torch data set or data loader, a data set of Hugging Face, or a data frame of pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.data.frames import check_columns, in_order
from bcfl.data.images import coloured
from bcfl.data.reading import (
    ARRAYS,
    Reader,
    Samples,
    check_split,
    first_names,
    is_loader,
    is_named,
    kind_of,
    length_of,
    opened,
    sample_array,
    without_names,
)
from bcfl.runtime.arrays import AS_ROWS
from bcfl.runtime.numbers import check_present
from bcfl.runtime.suggestions import described
from bcfl.runtime.user_code import warn_of_data

TARGETS = ("label", "labels", "target", "targets"), ("y", "fine_label")
"""Usual columns of targets; the last ones only where there is none of the first."""
Columns = str | Sequence[str] | None
Rows = NDArray[Any] | Sequence[NDArray[Any]]
"""Values of all samples; a list where arrays of samples differ in the type of their numbers."""


def samples_of(
    source: Any,  # noqa: ANN401 - of libraries that may not be installed
    inputs: Columns = None,
    targets: str | None = None,
) -> tuple[Rows, Rows]:
    """Inputs and targets of all samples of a source, in its order.

    Args:
        source: a map-style torch data set of pairs or of mappings by name, a data loader of batches
            of pairs, or a data set or data frame with columns.
        inputs: see `bcfl.ClientData.from_dataset`.
        targets: see `bcfl.ClientData.from_dataset`.

    Raises:
        TypeError: the source is none of these, has no length, so that it might have no end, or its
            samples are not pairs.
        ValueError: there is no sample or no such column, samples differ in shape, or code of the
            source raised an error of any kind at a sample, which is then named and the cause.
    """
    x, y, _ = samples_and_columns(source, inputs, targets)
    return x, y


def samples_and_columns(
    source: Any,  # noqa: ANN401 - of libraries that may not be installed
    inputs: Columns = None,
    targets: str | None = None,
    like: Sequence[Any] = (),
) -> tuple[Rows, Rows, tuple[Any, ...]]:
    """Inputs and targets as of `samples_of`, and the names of the columns of the inputs.

    Args:
        source: see `samples_of`.
        inputs: see `samples_of`.
        targets: see `samples_of`.
        like: columns of the training samples, whose order those of the inputs get.

    Returns:
        Inputs, targets, and names; of a source without columns none.

    Raises:
        TypeError: see `samples_of`.
        ValueError: see `samples_of`; or the columns are others than `like`, or have one name.
    """
    by_name = inputs is not None or targets is not None
    source = opened(source, by_name)
    if _has_columns(source):
        names = column_names(source)
        target = target_column(targets, names)
        columns: Sequence[Any] = _inputs(names, target, inputs, is_first=not like)
        columns = in_order(columns, like, "data") if like else columns
        return *_of_columns(source, columns, target), tuple(columns)
    if by_name:
        raise without_names(source)
    length_of(source)
    part, items = ("batch", source) if is_loader(source) else ("sample", source.samples)
    reader = Reader(kind_of(source), part)
    hint = ARRAYS * _are_arrays(source)
    pairs = (_pair(reader, index, item, hint) for index, item in reader.each(items))
    x, y = zip(*(chain.from_iterable(map(_rows, pairs)) if part == "batch" else pairs), strict=True)
    return _joined(x), _joined(y, "targets"), ()


def _rows(batch: tuple[NDArray[Any], NDArray[Any]]) -> Iterable[tuple[Any, Any]]:
    """Pairs of the samples of a batch; a loader without batches gives one sample each."""
    x, y = batch
    if not y.ndim:
        return (batch,)
    if x.shape[:1] != y.shape[:1]:
        raise ValueError(
            f"batches must have one row per sample, got inputs {x.shape} and targets {y.shape}"
        )
    return zip(x, y, strict=True)


def _has_columns(source: Any) -> bool:  # noqa: ANN401
    if isinstance(source, Samples):
        return isinstance(source[0], Mapping)
    return is_named(source)


def _are_arrays(source: Any) -> bool:  # noqa: ANN401
    """Whether a source seems to be arrays, or a pair of them, in place of samples."""
    if kind_of(source) not in ("tuple", "list", "ndarray", "Tensor"):
        return False
    first = source[0]
    return not isinstance(first, tuple | list) or (len(source) == 2 and len(first) != 2)


def _pair(
    reader: Reader,
    index: int,
    sample: Any,  # noqa: ANN401
    hint: str,
) -> tuple[Any, Any]:
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        got = type(sample).__name__
        if isinstance(sample, tuple | list):
            got = f"a {got} of {len(sample)}"
            of = ".dataset" * (reader.part == "batch")
            more = f"; those of more parts: `[(x, y) for x, y, *_ in data{of}]`"
            hint = hint or more * (len(sample) > 2)
        names = f" with {list(sample)[:5]}" if isinstance(sample, dict) else ""
        raise TypeError(
            f"data must be pairs of an input and a target, got {got} as {reader.part} {index} of "
            f"{reader.kind}{names or hint}"
        )
    return reader.at(index, sample_array, sample[0]), reader.at(index, sample_array, sample[1])


def _joined(arrays: Sequence[NDArray[Any]], what: str = "samples") -> Rows:
    arrays = coloured(arrays)
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1:
        scalars = [array.item() if array.ndim == 0 else 0 for array in arrays]
        check_present(np.array(scalars, object), what)
        are_rows = what == "targets" and all(len(shape) == 1 for shape in shapes)
        remedy = AS_ROWS if are_rows else "; pad or crop them before"
        raise ValueError(f"{what} must agree in shape, got {shapes[:3]}{remedy}")
    if arrays[0].ndim and len({array.dtype for array in arrays}) > 1:
        return arrays
    if len({array.dtype.kind in "US" for array in arrays}) > 1:
        arrays = [array.astype(object) for array in arrays]  # else missing text becomes "nan"
    return np.stack(arrays)


def _of_columns(
    source: Any,  # noqa: ANN401
    columns: Sequence[Any],
    target: str,
) -> tuple[Rows, Rows]:
    x = [_column(source, name) for name in columns]
    check_columns(zip(columns, x, strict=True))
    shapes = {name: np.shape(values[0]) for name, values in zip(columns, x, strict=True)}
    is_array = len(x) == 1 and any(shapes.values())
    if not is_array and any(shapes.values()):
        raise ValueError(
            f"inputs must be one column of arrays or several of numbers, got samples of {shapes}"
        )
    return (x[0] if is_array else np.stack(x, axis=1)), _column(source, target, "targets")


def target_column(targets: str | None, names: Sequence[str]) -> str:
    """Column of the targets; the only usual one where none is named.

    Args:
        targets: its name, if it is given; by default see `bcfl.data.samples_of`.
        names: of all columns.

    Raises:
        ValueError: there is no such column, or none or several of the usual ones.
    """
    if targets is None:
        found = [[name for name in some if name in names] for some in TARGETS]
        usual = found[0] or found[1]
        if len(usual) != 1:
            both = f"; {' and '.join(map(repr, usual))} might be it" * (len(usual) > 1)
            raise ValueError(
                f"targets must name the column of the targets, one of {list(names)}{both}; set "
                "targets=NAME"
            )
        return usual[0]
    if targets not in names:
        raise ValueError(
            f"data must have a column {targets!r}, got {names}"
            if isinstance(targets, str)
            else f"targets must be the name of one column, one of {names}, got {targets!r}"
        )
    return targets


def _inputs(names: list[str], target: str, inputs: Columns, is_first: bool) -> list[str]:
    """Columns of the inputs; where none are named, all but those that are usual for targets."""
    if inputs is None:
        chosen: list[Any] = [name for name in names if name not in (target, *chain(*TARGETS))]
        left_out = [name for name in names if name != target and name not in chosen]
        if left_out and is_first:
            warn_of_data(
                f"columns {left_out} are left out of the inputs, as they may hold targets as "
                f"{target!r} does; name those of the inputs if not, inputs={chosen + left_out}"
            )
    else:
        one = isinstance(inputs, str) or not isinstance(inputs, Iterable)
        chosen = [inputs] if one else list(inputs)
        for name in chosen:
            if name not in names:
                raise ValueError(f"data must have a column {name!r}, got {names}")
        if target in chosen:
            raise ValueError(
                f"inputs must not hold the column of the targets, {target!r}, got {chosen}"
            )
    if not chosen:
        raise ValueError(f"inputs must name at least one column, some of {names}, got none")
    repeated = sorted({str(name) for name in chosen if [*names, *chosen].count(name) > 2})
    if repeated:
        raise ValueError(f"columns of inputs must have names of their own, got {repeated} twice")
    return chosen


def column_names(source: Any) -> list[str]:  # noqa: ANN401
    """Names of the columns of a data frame, or of the samples of a data set of Hugging Face.

    Args:
        source: a data frame, or a data set whose samples are mappings with names.

    Raises:
        TypeError: the source has no length, so that it might have no end, or no names.
        ValueError: there is no sample, or the first one cannot be read.
    """
    check_split(source)
    length_of(source)
    if not _has_columns(source):
        return first_names(source)
    if _is_transformed(source):
        return list(Reader(kind_of(source)).at(0, source.__getitem__, 0))
    return list(source.column_names if hasattr(source, "column_names") else source.columns)


def _column(
    source: Any,  # noqa: ANN401
    name: str,
    what: str = "samples",
) -> Rows:
    """The values of a column; images of Hugging Face as Pillow or torch give them."""
    reader = Reader(kind_of(source))
    if _is_transformed(source):
        numbered: Iterable[tuple[int, Any]] = (
            (index, _named(reader.at(index, source.__getitem__, index), name, index))
            for index in range(len(source))
        )
    else:
        plain = source if _format(source) in (None, "torch") else source.with_format(None)
        whole = Reader(reader.kind, "column").at(repr(name), plain.__getitem__, name)
        reader = Reader(reader.kind, f"column {name!r}, sample")
        numbered = reader.each(whole)
    arrays = [reader.at(index, sample_array, value) for index, value in numbered]
    return _joined(arrays, what)


def _named(sample: Any, name: str, index: int) -> Any:  # noqa: ANN401
    if not isinstance(sample, Mapping):
        raise TypeError(
            f"sample {index} must be a mapping as the first one, got {described(sample)}"
        )
    if name not in sample:
        raise ValueError(f"sample {index} must have {name!r} as the first one, got {list(sample)}")
    return sample[name]


def _is_transformed(source: Any) -> bool:  # noqa: ANN401
    """Whether samples are mappings, or pass through a function, which may make other columns."""
    return _format(source) == "custom" or isinstance(source, Samples)


def _format(source: Any) -> str | None:  # noqa: ANN401
    """The format of a data set of Hugging Face, None if it has none."""
    form = getattr(source, "format", None)
    return form["type"] if isinstance(form, dict) else None
