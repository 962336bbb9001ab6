"""Values that users give, of any type, as plain arrays: neither masked, sparse nor ragged."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from os import PathLike
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bcfl.runtime.numbers import check_present, places_of
from bcfl.runtime.suggestions import described

REAL_KINDS = "biuf"
TO_COLUMNS = "; values without an order become columns of 0 and 1"
AS_COLUMNS = (
    f"{TO_COLUMNS}, by one list of categories for all "
    "clients, and for training and test samples alike: "
    "`[[value == one for {}one in categories] for {} in values]`"
)
"""What to do about text among inputs."""
AS_ROWS = (
    "; labels of which a sample may have several become a row of 0 and 1 each, by one list "
    "`labels` of all of them: `[one in own for one in labels]` in place of the labels `own` of a "
    "sample"
)
"""What to do about labels of samples that differ in their number."""
AS_NUMBERS = "; they become numbers by `numpy.asarray(values, float)`"
"""What to do about text and other objects that numbers can be read from."""


def plain_array(values: Any, what: str) -> NDArray[Any]:  # noqa: ANN401 - of any library
    """Values of any type as an array of numpy, which may share their memory.

    Args:
        values: an array, tensor or nested list; text beside other values in it becomes objects.
        what: name of the values, for errors.

    Returns:
        The array, in the byte order of this machine.

    Raises:
        TypeError: the values are masked, sparse or ragged.
    """
    if isinstance(values, Tensor):
        values = plain_tensor(values, what).numpy()
    _check_sparse(values, what)
    array = _converted(values, what)
    if array.dtype.kind in "OUS" and not array.ndim:
        _check_several(values, what)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_several(values: Any, what: str) -> None:  # noqa: ANN401
    """Check that values in place of an array are no path, and nothing that has to become a list."""
    if isinstance(values, PathLike) or (isinstance(values, str) and PurePath(values).suffix):
        raise TypeError(
            f"{what} must be an array, got the path {str(values)!r}; read it before, such as by "
            "numpy.load or pandas.read_csv"
        )
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        remedy = "`list(values)` makes a list"
        if isinstance(values, Mapping):
            remedy = "of columns `pandas.DataFrame(values)`, of samples `list(values.values())`"
        raise TypeError(
            f"{what} must be an array or a list, got a {type(values).__name__}; {remedy}"
        )


def _converted(values: Any, what: str) -> NDArray[Any]:  # noqa: ANN401
    """Values as an array, in which single masked entries of lists are looked for."""
    try:
        return dense_array(values)
    except np.ma.MaskError:
        raise _of_masked(values, what) from None
    except ValueError:
        ragged = isinstance(values, Sequence | np.ndarray)
        remedy = AS_ROWS if what in ("labels", "targets") else "; pad or crop them before"
        raise TypeError(
            f"{what} must be an array of numbers, of samples that agree in shape, got a "
            f"{type(values).__name__}{' whose parts differ in shape' * ragged}{remedy * ragged}"
        ) from None
    except (TypeError, RuntimeError) as error:  # such as of lists of tensors
        raise TypeError(f"{what} must be an array of numbers: {error}") from None


def dense_array(values: Any) -> NDArray[Any]:  # noqa: ANN401 - of any library
    """Values as `numpy.asarray` makes an array of them, where none is masked.

    Args:
        values: of one sample, or of all; text beside other values in a list becomes objects.

    Raises:
        numpy.ma.MaskError: an entry is masked.
    """
    found = arrays_in(values)
    if found and _are_masked(found):
        raise np.ma.MaskError
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    try:
        with warnings.catch_warnings(action="error", category=UserWarning):  # of masked entries
            array = np.asarray(values)
    except UserWarning:
        if is_masked(values):
            raise np.ma.MaskError from None
        array = np.asarray(values)
    if array.dtype.kind not in "US":
        return array
    objects = np.asarray(values, object)  # else a missing name becomes "nan"
    return array if all(isinstance(one, str | bytes) for one in objects.flat) else objects


def real_array(
    values: ArrayLike | Tensor,
    what: str,
    of_text: str = AS_COLUMNS,
) -> NDArray[np.generic]:
    """Real numbers as an array of numpy, which may share the memory of `values`.

    Args:
        values: numbers, in any memory layout and byte order.
        what: name of the values, for errors.
        of_text: what to do about text, for errors.

    Raises:
        TypeError: the values are masked, sparse, ragged, complex, or no numbers.
        ValueError: some are missing, such as None.
    """
    array = plain_array(values, what)
    if array.dtype.kind not in REAL_KINDS:
        known = {"c": "complex numbers", "O": "objects", "U": "text", "S": "text", "V": "records"}
        got = "text" if has_text(array) else known.get(array.dtype.kind, "dates")
        if got == "objects":
            check_present(array, what)
            got = f"objects such as {described(next(array.flat))}" if array.size else got
        else:
            got = f"{got} ({array.dtype})"
        raise TypeError(f"{what} must be real numbers, got {got}{_remedy(array, of_text)}")
    return array


def _remedy(array: NDArray[Any], of_text: str) -> str:
    """What to do about text, and objects that are numbers, or rows of them."""
    if array.dtype.kind in "OUS" and array.size and _are_numbers(array):
        are_targets = of_text != "" and not of_text.startswith(TO_COLUMNS)
        return AS_NUMBERS + ", and classes by `.astype(int)` of that" * are_targets
    if has_text(array):
        of_rows = ("value in row for ", "row") if array.ndim == 2 else ("", "value")
        return of_text.format(*of_rows) if of_text == AS_COLUMNS else of_text
    if array.size and all(isinstance(one, list | tuple | np.ndarray) for one in array.flat):
        one_shape = len({len(one) for one in array.flat}) == 1
        stacked = "rows that are objects become one array by `numpy.stack(list(values))`"
        return f"; {stacked if one_shape else 'rows must agree in shape; pad or crop them before'}"
    return holds_sets(array) * AS_ROWS


def _are_numbers(array: NDArray[Any]) -> bool:
    """Whether text or other objects are numbers."""
    try:
        return array.ndim > 0 and not np.isnan(array.astype(float)).any()
    except (TypeError, ValueError):
        return False


def holds_sets(array: NDArray[Any]) -> bool:
    """Whether there are several labels each in place of one, such as in sets.

    Args:
        array: labels of all samples.
    """
    return array.dtype.kind == "O" and any(
        isinstance(one, Collection) and not isinstance(one, str | bytes) for one in array.flat
    )


def has_text(array: NDArray[Any]) -> bool:
    """Whether some entries are text, as in columns of data frames.

    Args:
        array: values of all samples.
    """
    objects = array.dtype.kind == "O" and any(isinstance(one, str) for one in array.flat)
    return objects or array.dtype.kind in "US"


def check_dense(values: Any, what: str) -> None:  # noqa: ANN401 - of any library
    """Check that values are no sparse matrix, and that none is masked, in a list neither.

    Args:
        values: of all samples.
        what: name of the values, for the message.

    Raises:
        TypeError: they are.
    """
    _check_sparse(values, what)
    if is_masked(values):
        raise _of_masked(values, what)


def _check_sparse(values: Any, what: str) -> None:  # noqa: ANN401 - of any library
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise TypeError(
            f"{what} must be a dense array, got {described(values)}; `.toarray()` makes one"
        )


def _of_masked(values: Any, what: str) -> TypeError:  # noqa: ANN401
    """The error of an array with masked entries, or of a list in which there are some."""
    are_rows = isinstance(values, list | tuple)
    mask = np.array([*map(is_masked, values)]) if are_rows else np.ma.getmaskarray(values)
    return TypeError(
        f"{what} must not be masked, got masked entries in {places_of(np.atleast_1d(mask))}; fill "
        "them, or leave their samples out"
    )


def is_masked(values: Any) -> bool:  # noqa: ANN401 - of any library
    """Whether entries of an array of numpy, or of one in nested lists, are masked.

    Args:
        values: of one sample, or of all.
    """
    return _are_masked(arrays_in(values, numbers=True))


def _are_masked(arrays: Sequence[Any]) -> bool:
    kinds = set(map(type, arrays))
    return any(issubclass(kind, np.ma.MaskedArray) for kind in kinds) and any(
        isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in arrays
    )


def pair_of(given: object, what: str, pair: str, remedy: str = "") -> Sequence[Any]:
    """Inputs and targets, which are to be a pair.

    Args:
        given: a tuple or list of two.
        what: what has them, for the message.
        pair: its parts, such as `(inputs, targets)`, for the message.
        remedy: what to do about anything else, for the message.

    Raises:
        TypeError: it is anything else.
    """
    if isinstance(given, tuple | list) and len(given) == 2:
        return given
    size = f" of length {len(given)}" if isinstance(given, tuple | list) else ""
    size = f" with {list(given)[:5]}" if isinstance(given, Mapping) else size
    raise TypeError(f"{what} must be a pair {pair}, got a {type(given).__name__}{size}{remedy}")


def featureless(inputs: Sequence[int], targets: Sequence[int], kind: str = "targets") -> str:
    """What is wrong with inputs that have no axis but that of the samples.

    Args:
        inputs: their shape.
        targets: that of the targets.
        kind: what targets are called.
    """
    swapped = f"; or are they swapped with the {kind}, of shape {tuple(targets)}?"
    return (
        "inputs must have shape (samples, ...) with at least one axis of features, got "
        f"{tuple(inputs)}; one number per sample becomes a feature by "
        f"`numpy.asarray(inputs).reshape(-1, 1)`{swapped * (len(targets) > 1)}"
    )


def arrays_in(values: Any, numbers: bool = False) -> list[Any]:  # noqa: ANN401 - of any library
    """Arrays, tensors and images in nested lists; an array itself where it is no list.

    Args:
        values: of one sample, or of all.
        numbers: whether lists that begin with a number are searched too, which takes as long as
            to convert them.
    """
    level, found = [values], []
    while level:
        kinds = set(map(type, level))
        arrays = tuple(filter(_is_array, kinds - _LISTS))
        if arrays:
            every = len(arrays) == len(kinds)
            found += level if every else [x for x in level if type(x) in arrays]
        nested = {kind for kind in kinds if issubclass(kind, list | tuple)}
        lists = [x for x in level if type(x) in nested and x] if nested else ()
        closed = () if numbers else _NUMBERS  # lists that begin so most often hold numbers alone
        level = list(chain.from_iterable([x for x in lists if type(x[0]) not in closed]))
    return found


_LISTS, _NUMBERS = {list, tuple}, {bool, int, float}


def _is_array(kind: type) -> bool:
    is_one = hasattr(kind, "__array__") or hasattr(kind, "__array_interface__")
    return is_one and not issubclass(kind, np.generic)


def plain_tensor(values: Tensor, what: str) -> Tensor:
    """A tensor on the CPU that numpy can read; narrow floating-point numbers become float32.

    Args:
        values: numbers.
        what: name of the values, for errors.

    Raises:
        TypeError: the tensor is sparse or quantized.
    """
    if values.layout is not torch.strided or values.is_quantized:
        made = "" if values.is_quantized else "; `.to_dense()` makes one"
        raise TypeError(f"{what} must be a dense tensor, got {values.layout}, {values.dtype}{made}")
    plain = values.detach().resolve_conj().resolve_neg().cpu()
    return plain.float() if plain.dtype in (torch.bfloat16, *_EIGHT_BITS) else plain


_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)
