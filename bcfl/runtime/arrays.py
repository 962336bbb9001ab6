"""Values that users give, of any type, as plain arrays: neither masked, sparse nor ragged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bcfl.runtime.numbers import check_present, places_of
from bcfl.runtime.suggestions import described

REAL_KINDS = "biuf"
AS_COLUMNS = (
    "; values without an order become columns of 0 and 1, by one list of categories for all "
    "clients, and for training and test samples alike: "
    "`[[value == one for one in categories] for value in values]`"
)
"""What to do about text among inputs."""
FROM_TEXT = "; numbers that are text become numbers by `.astype(float)`"
"""What to do about text that numbers can be read from."""

Check = Callable[[Sequence[Any]], None]
"""A check of the arrays, tensors and images in a list, before they are one array."""


def plain_array(
    values: Any,  # noqa: ANN401 - of any library
    what: str,
    check: Check | None = None,
) -> NDArray[Any]:
    """Values of any type as an array of numpy, which may share their memory.

    Args:
        values: an array, tensor or nested list; text beside other values in it becomes objects.
        what: name of the values, for errors.
        check: called with the arrays, tensors and images in a nested list.

    Returns:
        The array, in the byte order of this machine.

    Raises:
        TypeError: the values are masked, sparse or ragged.
    """
    if isinstance(values, Tensor):
        values = plain_tensor(values, what).numpy()
    found = arrays_in(values)
    check_dense(values, what, found)
    if check is not None:
        check(found)
    array = _converted(values, what)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _converted(values: Any, what: str) -> NDArray[Any]:  # noqa: ANN401
    """Values as an array, in which single masked entries of lists are looked for."""
    is_list = isinstance(values, list | tuple)
    try:
        array = _of_list(values) if is_list else np.asarray(values)
    except (np.ma.MaskError, UserWarning):  # of a masked entry, where warnings are errors
        check_dense(values, what, arrays_in(values, numbers=True))
        raise
    except ValueError:
        ragged = isinstance(values, Sequence | np.ndarray)
        raise TypeError(
            f"{what} must be an array of numbers, of samples that agree in shape, got a "
            f"{type(values).__name__}{' whose parts differ in shape' * ragged}"
        ) from None
    except (TypeError, RuntimeError) as error:  # such as of lists of tensors
        raise TypeError(f"{what} must be an array of numbers: {error}") from None
    if is_list and array.dtype.kind == "f" and np.isnan(array).any():  # as masked entries become
        check_dense(values, what, arrays_in(values, numbers=True))
    return array


def _of_list(values: Sequence[Any]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "US":
        return array
    objects = np.asarray(values, object)  # else a missing name becomes "nan"
    return array if all(isinstance(one, str | bytes) for one in objects.flat) else objects


def real_array(
    values: ArrayLike | Tensor,
    what: str,
    of_text: str = AS_COLUMNS,
    check: Check | None = None,
) -> NDArray[np.generic]:
    """Real numbers as an array of numpy, which may share the memory of `values`.

    Args:
        values: numbers, in any memory layout and byte order.
        what: name of the values, for errors.
        of_text: what to do about text, for errors.
        check: see `bcfl.runtime.plain_array`.

    Raises:
        TypeError: the values are masked, sparse, ragged, complex, or no numbers.
        ValueError: some are missing, such as None.
    """
    array = plain_array(values, what, check)
    if array.dtype.kind not in REAL_KINDS:
        known = {"c": "complex numbers", "O": "objects", "U": "text", "S": "text", "V": "records"}
        got = "text" if _has_text(array) else known.get(array.dtype.kind, "dates")
        if got == "objects":
            check_present(array, what)
            got = f"objects such as {described(next(array.flat))}" if array.size else got
            got += _of_objects(array)
        else:
            got = f"{got} ({array.dtype})"
        remedy = _remedy(array, of_text) if _has_text(array) else ""
        raise TypeError(f"{what} must be real numbers, got {got}{remedy}")
    return array


def _of_objects(array: NDArray[Any]) -> str:
    """What to do about objects that are numbers, or rows of them."""
    if array.size and all(isinstance(one, Real) for one in array.flat):
        return "; numbers that are objects become numbers by `.astype(float)`"
    if array.size and all(isinstance(one, list | tuple | np.ndarray) for one in array.flat):
        return "; rows that are objects become one array by `numpy.stack(list(values))`"
    return ""


def _remedy(array: NDArray[Any], of_text: str) -> str:
    """What to do about text; where it holds numbers alone, these can be read."""
    try:
        array.astype(float)
    except (TypeError, ValueError):
        return of_text
    return FROM_TEXT + ", classes by `.astype(int)`" * (of_text not in ("", AS_COLUMNS))


def _has_text(array: NDArray[Any]) -> bool:
    """Whether some entries are text, as in columns of data frames."""
    objects = array.dtype.kind == "O" and any(isinstance(one, str) for one in array.flat)
    return objects or array.dtype.kind in "US"


def check_dense(
    values: Any,  # noqa: ANN401 - of any library
    what: str,
    found: Sequence[Any] | None = None,
) -> None:
    """Check that values are no sparse matrix, and that none is masked, in a list neither.

    Args:
        values: of all samples.
        what: name of the values, for the message.
        found: the arrays in them, where they are known already; see `arrays_in`.

    Raises:
        TypeError: they are.
    """
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise TypeError(
            f"{what} must be a dense array, got {described(values)}; `.toarray()` makes one"
        )
    if _are_masked(arrays_in(values, numbers=True) if found is None else found):
        are_rows = isinstance(values, list | tuple)
        mask = np.array([*map(is_masked, values)]) if are_rows else np.ma.getmaskarray(values)
        mask = np.atleast_1d(mask)
        raise TypeError(
            f"{what} must not be masked, got masked entries in {places_of(mask)}; fill them, or "
            "leave their samples out"
        )


def is_masked(values: Any) -> bool:  # noqa: ANN401 - of any library
    """Whether entries of an array of numpy, or of one in nested lists, are masked.

    Args:
        values: of one sample, or of all.
    """
    are_rows = isinstance(values, list | tuple)
    return _are_masked(arrays_in(values, numbers=True) if are_rows else (values,))


def _are_masked(arrays: Sequence[Any]) -> bool:
    kinds = set(map(type, arrays))
    return any(issubclass(kind, np.ma.MaskedArray) for kind in kinds) and any(
        isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in arrays
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
        arrays = tuple(filter(_is_array, kinds))
        found += level if len(arrays) == len(kinds) else [x for x in level if type(x) in arrays]
        are_lists = any(issubclass(kind, list | tuple) for kind in kinds)
        lists = [x for x in level if isinstance(x, list | tuple) and x] if are_lists else []
        level = list(chain.from_iterable(x for x in lists if numbers or _is_open(x[0])))
    return found


def _is_open(first: object) -> bool:
    """Whether a list that begins so may hold arrays; most hold numbers alone."""
    return type(first) not in _NUMBERS


_NUMBERS = {bool, int, float}


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
