"""Samples of data sets of other libraries, as inputs and targets.

A torch data set or data loader, a data set of Hugging Face, or a data frame of pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bcfl.data.class_names import names_of_classes
from bcfl.data.frames import check_columns, in_order
from bcfl.data.images import coloured
from bcfl.data.reading import (
    ARRAYS,
    Reader,
    Samples,
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
INPUTS = ("image", "img", "inputs", "x")
"""Usual columns of inputs."""
Columns = str | Sequence[str] | None
Rows = NDArray[Any] | Sequence[NDArray[Any]]
"""Values of all samples; a list where arrays of samples differ in the type of their numbers."""


class Found(NamedTuple):
    """Samples of a source, in its order.

    Attributes:
        inputs: of all samples.
        targets: of all samples.
        columns: names of the columns of the inputs; none of a source without columns.
        class_names: names of the classes by number, as the source has them; None without any.
    """

    inputs: Rows
    targets: Rows
    columns: tuple[Any, ...] = ()
    class_names: tuple[str, ...] | None = None


def samples_of(
    source: Any,  # noqa: ANN401 - of libraries that may not be installed
    inputs: Columns = None,
    targets: str | None = None,
    like: Sequence[Any] = (),
) -> Found:
    """Inputs and targets of all samples of a source, and the names that it has.

    Args:
        source: a map-style torch data set of pairs or of mappings by name, a data loader of batches
            of pairs, or a data set or data frame with columns. Of samples of more parts only the
            first two are read, of which a warning tells.
        inputs: see `bcfl.ClientData.from_dataset`.
        targets: see `bcfl.ClientData.from_dataset`.
        like: columns of the training samples, whose order those of the inputs get.

    Raises:
        TypeError: the source is none of these, has no length, so that it might have no end, or its
            samples are not pairs.
        ValueError: there is no sample or no such column, the columns are others than `like`, or
            have one name, samples differ in shape, or code of the source raised an error of any
            kind at a sample, which is then named and the cause.
    """
    by_name = inputs is not None or targets is not None
    read = opened(source, by_name)
    length_of(read)
    if _has_columns(read):
        names = column_names(read)
        target = target_column(targets, names)
        known = _usual_input(read, names, target) if inputs is None else {}
        columns: Sequence[Any] = [*known] or _inputs(names, target, inputs, is_first=not like)
        columns = in_order(columns, like, "data", hasattr(read, "iloc")) if like else columns
        pair = _of_columns(read, columns, target, known)
        return Found(*pair, tuple(columns), names_of_classes(source, target))
    if by_name:
        raise without_names(read)
    part, items = ("batch", read) if is_loader(read) else ("sample", read.samples)
    reader = Reader(kind_of(read), part)
    hint = ARRAYS * _are_arrays(read)
    pairs = _pairs(reader, items, hint)
    x, y = zip(*(chain.from_iterable(map(_rows, pairs)) if part == "batch" else pairs), strict=True)
    return Found(_joined(x), _joined(y, "targets"), class_names=names_of_classes(source))


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
    if not isinstance(first, tuple | list):
        return True
    if len(source) != 2 or len(first) == 2:
        return False
    begins = [one[0] for one in source if isinstance(one, tuple | list) and one]
    return len({isinstance(one, list | tuple) or np.ndim(one) > 0 for one in begins}) == 2


def _pairs(reader: Reader, items: Iterable[Any], hint: str) -> Iterator[tuple[Any, Any]]:
    """The first two parts of each sample or batch, and a warning if there are more."""
    has_more = False
    for index, sample in reader.each(items):
        is_row = isinstance(sample, tuple | list)
        if hint or not is_row or len(sample) < 2:
            raise _no_pair(reader, index, sample, hint)
        has_more = has_more or len(sample) > 2
        x, y = (reader.at(index, sample_array, one) for one in sample[:2])
        yield x, y
    if has_more:
        warn_of_data(
            f"only the first two parts of each {reader.part} of {reader.kind} are read, an input "
            "and a target"
        )


def _no_pair(reader: Reader, index: int, sample: Any, hint: str) -> TypeError:  # noqa: ANN401
    """The error of a sample or batch that is no pair."""
    got = type(sample).__name__
    if isinstance(sample, tuple | list):
        got = f"a {got} of {len(sample)}"
    elif isinstance(sample, Mapping):
        got += f" with {list(sample)[:5]}"
        hint = "; give the data set that it loads, `loader.dataset`" * (reader.part == "batch")
    return TypeError(
        f"data must be pairs of an input and a target, got {got} as {reader.part} {index} of "
        f"{reader.kind}{hint}"
    )


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
    known: Mapping[str, Rows],
) -> tuple[Rows, Rows]:
    """Inputs and targets, where the values of some columns may be known."""
    x = [known[name] if name in known else _column(source, name) for name in columns]
    check_columns(zip(columns, x, strict=True), hasattr(source, "iloc"))
    shapes = {name: np.shape(values[0]) for name, values in zip(columns, x, strict=True)}
    arrays = [name for name, shape in shapes.items() if shape]
    is_array = len(x) == 1 and bool(arrays)
    if arrays and not is_array:
        raise ValueError(
            f"inputs must be one column of arrays or several of numbers, got samples of {shapes}"
            + f"; inputs={arrays[0]!r} leaves out the others" * (len(arrays) == 1)
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
        if isinstance(targets, str):
            raise ValueError(f"data must have a column {targets!r}, got {names}")
        raise ValueError(
            f"targets must be the name of one column, one of {list(names)}, got {targets!r}"
            f"{_of_several(targets, names)}"
        )
    return targets


def _of_several(targets: Any, names: Sequence[str]) -> str:  # noqa: ANN401 - as it was given
    """How several columns of targets of a data frame are read, in words; empty if it holds others.

    Args:
        targets: what was given as targets.
        names: of all columns.
    """
    chosen = [*targets] if isinstance(targets, Iterable) else []
    if not chosen or not all(name in names for name in chosen):
        return ""
    others = [name for name in names if name not in chosen]
    pair = f"(frame[{others}], frame[{chosen}])"
    return f"; several columns of a data frame: `ClientData.from_arrays(name, {pair})`"


def _usual_input(
    source: Any,  # noqa: ANN401
    names: Sequence[str],
    target: str,
) -> dict[str, Rows]:
    """The only usual column of inputs with its values, if these are arrays; else nothing."""
    found = [name for name in names if name in INPUTS and name != target]
    if len(found) != 1:
        return {}
    values = _column(source, found[0])
    return {found[0]: values} if np.ndim(values[0]) else {}


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
    """Names of the columns of a source that has some, see `samples_of`."""
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
