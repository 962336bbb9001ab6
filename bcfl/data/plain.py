"""Values that users give, of any type, as plain arrays: neither masked, sparse nor ragged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from reprlib import repr as shortened
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl.runtime.numbers import places_of

IMAGE_TYPES = {"uint8", "uint16"}
"""Types of numbers that say what white is."""
DEEP_TYPES = {"1": "bool", "I": "int32", "F": "float32"} | dict.fromkeys(
    ("16", "16L", "16B", "16N"), "uint16"
)
"""Types of numbers by modes of Pillow, or by what follows the semicolon; of all others uint8."""


def plain_array(values: Any, what: str) -> NDArray[Any]:  # noqa: ANN401 - of any library
    """Values of any type as an array of numpy, which may share their memory.

    Args:
        values: an array, tensor or nested list; text beside other values in it becomes objects.
        what: name of the values, for errors.

    Returns:
        The array, in the byte order of this machine.

    Raises:
        TypeError: the values are masked, sparse or ragged, or differ in type where that says how
            images are scaled.
    """
    if isinstance(values, Tensor):
        values = plain_tensor(values, what).numpy()
    check_dense(values, what)
    check_types(arrays_in(values), what)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            objects = np.asarray(values, object)  # else a missing name becomes "nan"
            are_text = all(isinstance(one, str | bytes) for one in objects.flat)
            array = array if are_text else objects
    except ValueError:
        ragged = isinstance(values, Sequence | np.ndarray)
        raise TypeError(
            f"{what} must be an array of numbers, of samples that agree in shape, got a "
            f"{type(values).__name__}{' whose parts differ in shape' * ragged}"
        ) from None
    except (TypeError, RuntimeError) as error:  # such as of lists of tensors
        raise TypeError(f"{what} must be an array of numbers: {error}") from None
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def check_dense(values: Any, what: str) -> None:  # noqa: ANN401 - of any library
    """Check that values are no sparse matrix, and that none is masked, in a list neither.

    Args:
        values: of all samples.
        what: name of the values, for the message.

    Raises:
        TypeError: they are.
    """
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise TypeError(
            f"{what} must be a dense array, got {described(values)}; `.toarray()` makes one"
        )
    if is_masked(values):
        are_rows = isinstance(values, list | tuple)
        mask = np.array([*map(is_masked, values)]) if are_rows else np.ma.getmaskarray(values)
        mask = np.atleast_1d(mask)
        raise TypeError(
            f"{what} must not be masked, got masked entries in {places_of(mask)}; fill them, or "
            "leave their samples out"
        )


def check_types(arrays: Iterable[Any], what: str) -> None:
    """Check that arrays of samples agree in type where this says what white is.

    Args:
        arrays: of samples; those without axes are left out.
        what: name of the values, for the message.

    Raises:
        TypeError: some have 8 or 16 bits, and others another type.
    """
    counts = Counter(_type_of(array) for array in arrays if getattr(array, "ndim", 1))
    if len(counts) > 1 and counts.keys() & IMAGE_TYPES:
        shown = " and ".join(f"{number} of {kind}" for kind, number in sorted(counts.items()))
        raise TypeError(
            f"{what} must be of one type, which says how images are scaled, got {shown}; convert "
            "them to one scale and type before, such as numbers from 0 to 1"
        )


def arrays_in(values: Any) -> Iterator[Any]:  # noqa: ANN401 - of any library
    """Arrays, tensors and images in nested lists; an array itself where it is no list.

    Args:
        values: of one sample, or of all.
    """
    if isinstance(values, list | tuple):
        kinds = set(map(type, values))  # most lists are of numbers, which are not looked at
        if any(issubclass(kind, list | tuple) or _is_array(kind) for kind in kinds):
            for value in values:
                yield from arrays_in(value)
    elif _is_array(type(values)):
        yield values


def _is_array(kind: type) -> bool:
    is_one = hasattr(kind, "__array__") or hasattr(kind, "__array_interface__")
    return is_one and not issubclass(kind, np.generic)


def is_masked(values: Any) -> bool:  # noqa: ANN401 - of any library
    """Whether entries of an array of numpy, or of one in nested lists, are masked.

    Args:
        values: of one sample, or of all.
    """
    return any(
        isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in arrays_in(values)
    )


def _type_of(array: Any) -> str:  # noqa: ANN401
    """Name of the type of the numbers of an array, in any byte order, or of an image."""
    if hasattr(array, "getbands"):
        return DEEP_TYPES.get(str(array.mode).partition(";")[2] or str(array.mode), "uint8")
    dtype = getattr(array, "dtype", "")
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


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


def described(value: object) -> str:
    """Type of an argument for errors; arrays by shape and dtype, other values cut short.

    Args:
        value: an argument of any type.
    """
    kind = type(value).__name__
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape:
        of = "" if dtype is None else f", {dtype}"
        return f"a {kind} of shape {tuple(shape)}{of}"
    if isinstance(value, tuple | list) and any(hasattr(each, "shape") for each in value[:3]):
        return f"a {kind} of {', '.join(map(described, value[:3]))}"
    return f"{shortened(value)} ({kind})"
