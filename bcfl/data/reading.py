"""Samples that code of others gives: errors of that code say which sample they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from bcfl.data.images import is_image, pixels_of
from bcfl.runtime.arrays import dense_array, plain_tensor
from bcfl.runtime.suggestions import described

ARRAYS = "; arrays of inputs and of targets: ClientData.from_arrays, or from_numpy of data sets"
"""What to do about arrays in place of samples."""
Result = TypeVar("Result")
_END = object()


@dataclass(frozen=True)
class Reader:
    """Calls code of a data set, and says of its errors where they come from.

    Attributes:
        kind: name of the type of the data set.
        part: what is read, such as `sample`.
    """

    kind: str
    part: str = "sample"

    def at(self, index: int | str, read: Callable[..., Result], *arguments: Any) -> Result:  # noqa: ANN401
        """The result of `read(*arguments)`.

        Args:
            index: which of the parts is read, for errors.
            read: the function.
            *arguments: its arguments.

        Raises:
            ValueError: it raised an error of any kind, which is the cause of this one.
        """
        try:
            return read(*arguments)
        except Exception as error:
            raise ValueError(
                f"data must give all samples, numbered from 0, but {self.part} {index} of "
                f"{self.kind} raised {type(error).__name__}: {error}"
            ) from error

    def each(self, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """Items with their numbers, from 0.

        Args:
            items: samples or batches.

        Raises:
            ValueError: an item cannot be read; see `at`.
        """
        iterator = self.at(0, iter, items)
        for index in count():
            item = self.at(index, next, iterator, _END)
            if item is _END:
                return
            yield index, item


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


def check_split(source: Any) -> None:  # noqa: ANN401
    """Check that a source is neither a path nor a mapping of several splits or arrays.

    Args:
        source: of samples.

    Raises:
        TypeError: it is one.
    """
    if isinstance(source, str | bytes | PathLike):
        raise TypeError(
            f"data must be samples, got the path {str(source)!r}; read its files before, such as "
            "by pandas.read_csv or numpy.load"
        )
    if isinstance(source, Mapping):
        raise TypeError(
            f"data must be one split with its samples, got splits {list(source)[:5]}; give one of "
            f"them, such as data[{next(iter(source), 'train')!r}]{ARRAYS}"
        )


def opened(source: Any, by_name: bool) -> Any:  # noqa: ANN401
    """A map-style data set without columns as `Samples`; another source as it is.

    Args:
        source: of samples.
        by_name: whether columns are asked for, which only samples that are mappings have.

    Raises:
        TypeError: the source has no columns, and these are asked for, or it has no length.
        ValueError: there is no sample, or one cannot be read, and is then named.
    """
    check_split(source)
    if is_named(source) or isinstance(source, Samples) or is_loader(source):
        return source
    reader, length, samples = Reader(kind_of(source)), length_of(source), []
    for index in range(length):
        sample = reader.at(index, _read, source, index)
        if by_name and not index and not isinstance(sample, Mapping):
            raise without_names(source)
        samples.append(sample)
    return Samples(reader.kind, samples)


def without_names(source: Any) -> TypeError:  # noqa: ANN401
    """The error of columns that are asked for where samples have no names."""
    hint = (
        "give the data set that it loads, `loader.dataset`"
        if is_loader(source)
        else "leave both out for pairs, or give mappings by name, a data frame, or a data set of "
        "Hugging Face"
    )
    return TypeError(
        f"inputs and targets name columns, which samples of {kind_of(source)} have not; {hint}"
    )


def _read(source: Any, index: int) -> Any:  # noqa: ANN401
    """A sample whose images are arrays, so that their files are closed."""
    sample = source[index]
    if isinstance(sample, Mapping):
        return {name: _closed(value) for name, value in sample.items()}
    return tuple(map(_closed, sample)) if isinstance(sample, tuple | list) else sample


def _closed(value: Any) -> Any:  # noqa: ANN401
    return sample_array(value) if is_image(value) else value


def sample_array(sample: Any) -> NDArray[Any]:  # noqa: ANN401 - tensors, arrays, images
    """A sample as an array.

    Args:
        sample: a tensor, an array, a number, or an image of Pillow, see `bcfl.data.pixels_of`.

    Raises:
        TypeError: it is a tensor that has no plain values, or it is masked.
        ValueError: it is an image that Pillow does not read in full.
    """
    if is_image(sample):
        return pixels_of(sample)
    if isinstance(sample, Tensor):
        return np.asarray(plain_tensor(sample, "samples").numpy())
    try:
        return dense_array(sample)
    except np.ma.MaskError:
        raise TypeError(
            "it must not be masked; fill such entries, or leave their samples out"
        ) from None


def kind_of(source: Any) -> str:  # noqa: ANN401
    """Name of the type of a data set."""
    return source.kind if isinstance(source, Samples) else type(source).__name__


def is_loader(source: Any) -> bool:  # noqa: ANN401
    """Whether a source gives batches, as a torch data loader does."""
    is_one = hasattr(source, "batch_size") and hasattr(source, "dataset")
    return is_one and not isinstance(source, Dataset)


def is_named(source: Any) -> bool:  # noqa: ANN401
    """Whether a source has columns, as data frames and data sets of Hugging Face have."""
    is_one = hasattr(source, "columns") or hasattr(source, "column_names")
    return is_one and not isinstance(source, Dataset)


def length_of(source: Any) -> int:  # noqa: ANN401
    """Number of samples or batches of a source.

    Args:
        source: of samples.

    Raises:
        TypeError: it is no source of samples, or has no length.
        ValueError: there is no sample, or its length cannot be read.
    """
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
            f"data must have a length, without which {kind_of(source)} might have no end; give a "
            f"part of it, such as {part}"
        ) from None
    except Exception as error:
        raise ValueError(
            f"data must have a length, but {kind_of(source)} raised {type(error).__name__}: {error}"
        ) from error
    if not length:
        raise ValueError("data must hold at least one sample, got none")
    return length
