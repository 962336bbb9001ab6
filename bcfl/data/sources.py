"""Samples of data sets of other libraries, as inputs and targets.

A torch data set or data loader, a data set of Hugging Face, or a data frame of pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.data.arrays import described, plain_tensor
from bcfl.data.frames import check_columns, in_order

TARGETS = ("label", "labels", "target", "targets", "y")
Columns = str | Sequence[str] | None


def samples_of(
    source: Any,  # noqa: ANN401 - of libraries that may not be installed
    inputs: Columns = None,
    targets: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and targets of all samples of a source, in its order.

    Args:
        source: a map-style torch data set of pairs or of mappings by name, a data loader of batches
            of pairs, or a data set or data frame with columns.
        inputs: column of the inputs, or several; columns of numbers become one axis. By default all
            but that of the targets.
        targets: column of the targets; by default the only one among `label`, `labels`, `target`,
            `targets` and `y`.

    Raises:
        TypeError: the source is none of these, has no length, so that it might have no end, or its
            samples are not pairs.
        ValueError: there is no sample or no such column, or samples differ in shape.
    """
    x, y, _ = samples_and_columns(source, inputs, targets)
    return x, y


def samples_and_columns(
    source: Any,  # noqa: ANN401 - of libraries that may not be installed
    inputs: Columns = None,
    targets: str | None = None,
    like: Sequence[Any] = (),
) -> tuple[NDArray[Any], NDArray[Any], tuple[Any, ...]]:
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
    source = _opened(source)
    if _has_columns(source):
        names = column_names(source)
        target = _target(targets, names)
        columns: Sequence[Any] = _inputs(names, target, inputs)
        columns = in_order(columns, like, "data") if like else columns
        return *_of_columns(source, columns, target), tuple(columns)
    kind = _kind(source)
    if inputs is not None or targets is not None:
        hint = "; give the data set that it loads" if _is_loader(source) else ""
        raise TypeError(f"inputs and targets name columns, which samples of {kind} have not{hint}")
    _length(source)
    if _is_loader(source):
        batches = [_pair(batch, kind) for batch in source]
        x, y = zip(*batches, strict=True)
        return _joined(x, np.concatenate), _joined(y, np.concatenate), ()
    x, y = zip(*(_pair(sample, kind) for sample in source.samples), strict=True)
    return _joined(x, np.stack), _joined(y, np.stack), ()


@dataclass(frozen=True)
class Samples:
    """Samples of a map-style data set, each of which was read once.

    Attributes:
        kind: name of the type of the data set.
        samples: pairs, or mappings by name.
    """

    kind: str
    samples: Sequence[Any]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - a sample
        return self.samples[index]


def _opened(source: Any) -> Any:  # noqa: ANN401
    """A map-style data set without columns as `Samples`; another source as it is."""
    if isinstance(source, dict):
        raise TypeError(f"data must be one split with its samples, got splits {list(source)[:5]}")
    named = hasattr(source, "columns") or hasattr(source, "column_names")
    if named or isinstance(source, Samples) or _is_loader(source):
        return source
    kind, samples = _kind(source), []
    length = _length(source)
    for index in range(length):
        try:
            samples.append(_read(source[index]))
        except (TypeError, KeyError, IndexError) as error:
            raise TypeError(
                f"data must give its samples by whole numbers from 0 to {length - 1}, but {kind} "
                f"raised {type(error).__name__} at {index}: {error}"
            ) from error
        except Exception as error:
            error.add_note(f"raised by sample {index} of {kind}")
            raise
    return Samples(kind, samples)


def _read(sample: Any) -> Any:  # noqa: ANN401
    """A sample whose images are arrays, so that their files are closed."""
    if isinstance(sample, Mapping):
        return {name: _closed(value) for name, value in sample.items()}
    return tuple(map(_closed, sample)) if isinstance(sample, tuple | list) else sample


def _closed(value: Any) -> Any:  # noqa: ANN401
    return _array(value) if hasattr(value, "getbands") else value


def _kind(source: Any) -> str:  # noqa: ANN401
    return source.kind if isinstance(source, Samples) else type(source).__name__


def _is_loader(source: Any) -> bool:  # noqa: ANN401
    return hasattr(source, "batch_size") and hasattr(source, "dataset")


def _has_columns(source: Any) -> bool:  # noqa: ANN401
    if isinstance(source, Samples):
        return isinstance(source[0], Mapping)
    return hasattr(source, "columns") or hasattr(source, "column_names")


def _length(source: Any) -> int:  # noqa: ANN401
    if not any(hasattr(source, name) for name in ("__len__", "__iter__", "__getitem__")):
        raise TypeError(
            "data must be a torch Dataset or DataLoader, a data set of Hugging Face or a data "
            f"frame, got {described(source)}; samples that are set aside for a test have to be "
            "split off before"
        )
    try:
        length = len(source)
    except TypeError:
        part = "list(itertools.islice(data, 1000))"
        if hasattr(source, "column_names"):  # a stream of Hugging Face
            part = "datasets.Dataset.from_list(list(data.take(1000)))"
        raise TypeError(
            f"data must have a length, without which {_kind(source)} might have no end; give a "
            f"part of it, such as {part}"
        ) from None
    if not length:
        raise ValueError("data must hold at least one sample, got none")
    return length


def _pair(sample: Any, kind: str) -> tuple[Any, Any]:  # noqa: ANN401
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        raise TypeError(
            f"data must be pairs of an input and a target, got {type(sample).__name__} from {kind}"
            + (
                f" with {list(sample)[:5]}"
                if isinstance(sample, dict)
                else "; arrays: ClientData.from_arrays" * (kind in ("tuple", "list", "ndarray"))
            )
        )
    return _array(sample[0]), _array(sample[1])


def _array(sample: Any) -> NDArray[Any]:  # noqa: ANN401 - tensors, arrays, images
    """A sample as an array; the channels of an image of Pillow come first, also a single one."""
    array = plain_tensor(sample, "samples").numpy() if isinstance(sample, Tensor) else sample
    array = np.asarray(array)
    return np.moveaxis(np.atleast_3d(array), 2, 0) if hasattr(sample, "getbands") else array


def _joined(arrays: Sequence[NDArray[Any]], join: Any) -> NDArray[Any]:  # noqa: ANN401
    shapes = sorted({array.shape[join is np.concatenate :] for array in arrays})
    if len(shapes) > 1:
        raise ValueError(f"samples must agree in shape, got {shapes[:3]}; pad or crop them before")
    joined: NDArray[Any] = join(arrays)
    return joined


def _of_columns(
    source: Any,  # noqa: ANN401
    columns: Sequence[Any],
    target: str,
) -> tuple[NDArray[Any], NDArray[Any]]:
    x = [_column(source, name) for name in columns]
    check_columns(zip(columns, x, strict=True))
    is_array = len(x) == 1 and x[0].ndim > 1
    if not is_array and any(values.ndim > 1 for values in x):
        shapes = {name: values.shape[1:] for name, values in zip(columns, x, strict=True)}
        raise ValueError(
            f"inputs must be one column of arrays or several of numbers, got samples of {shapes}"
        )
    return (x[0] if is_array else np.stack(x, axis=1)), _column(source, target)


def _target(targets: str | None, names: list[str]) -> str:
    """Column of the targets; the only usual one where none is named."""
    if targets is None:
        usual = [name for name in TARGETS if name in names]
        if len(usual) != 1:
            raise ValueError(f"targets must name the column of the targets, one of {names}")
        return usual[0]
    if targets not in names:
        raise ValueError(
            f"data must have a column {targets!r}, got {names}"
            if isinstance(targets, str)
            else f"targets must be the name of one column, one of {names}, got {targets!r}"
        )
    return targets


def _inputs(names: list[str], target: str, inputs: Columns) -> list[str]:
    """Columns of the inputs; all others than that of the targets where none are named."""
    if inputs is None:
        chosen: list[Any] = [name for name in names if name != target]
    else:
        one = isinstance(inputs, str) or not isinstance(inputs, Iterable)
        chosen = [inputs] if one else list(inputs)
        for name in chosen:
            if name not in names:
                raise ValueError(f"data must have a column {name!r}, got {names}")
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
        TypeError: the source has no length, so that it might have no end.
        ValueError: there is no sample.
    """
    _length(source)
    if _is_transformed(source):
        return list(source[0])
    return list(source.column_names if hasattr(source, "column_names") else source.columns)


def _column(source: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    """The values of a column; images of Hugging Face as Pillow or torch give them."""
    if _is_transformed(source):
        values = [_named(source[index], name, index) for index in range(len(source))]
    elif _format(source) in (None, "torch"):
        values = source[name]
    else:
        values = source.with_format(None)[name]
    return _joined([_array(value) for value in values], np.stack)


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
