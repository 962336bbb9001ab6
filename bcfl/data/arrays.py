"""Samples that users give, as tensors of the library's own.

Arrays of numpy and torch, lists, data frames and memory maps pass through here. What is returned
shares no memory with what was given.
"""

from __future__ import annotations

from reprlib import repr as shortened

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

REAL_KINDS = "biuf"


def real_array(values: ArrayLike | Tensor, what: str) -> NDArray[np.generic]:
    """Real numbers as an array of numpy, which may share the memory of `values`.

    Args:
        values: numbers, in any memory layout and byte order.
        what: name of the values, for errors.

    Raises:
        TypeError: the values are complex, masked, sparse, ragged, or no numbers.
    """
    if isinstance(values, Tensor):
        values = plain_tensor(values, what).numpy()
    if np.ma.is_masked(values):
        raise TypeError(
            f"{what} must not be masked: fill masked entries, or leave out their samples"
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise TypeError(
            f"{what} must be an array of numbers, of samples that agree in shape, got a "
            f"{type(values).__name__} whose parts differ in shape"
        ) from None
    except TypeError as error:
        raise TypeError(f"{what} must be an array of numbers: {error}") from None
    if array.dtype.kind not in REAL_KINDS:
        known = {"c": "complex numbers", "O": "objects", "U": "text", "S": "text", "V": "records"}
        got = known.get(array.dtype.kind, "dates")
        codes = "; numpy.unique(values, return_inverse=True)[1] encodes it" if got == "text" else ""
        raise TypeError(f"{what} must be real numbers, got {got} ({array.dtype}){codes}")
    return array


def plain_tensor(values: Tensor, what: str) -> Tensor:
    """A tensor on the CPU that numpy can read; narrow floating-point numbers become float32.

    Args:
        values: numbers.
        what: name of the values, for errors.

    Raises:
        TypeError: the tensor is sparse or quantized.
    """
    if values.layout is not torch.strided or values.is_quantized:
        raise TypeError(f"{what} must be a dense tensor, got {values.layout}, {values.dtype}")
    plain = values.detach().resolve_conj().resolve_neg().cpu()
    return plain.float() if plain.dtype in (torch.bfloat16, *_EIGHT_BITS) else plain


_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)


def inputs_tensor(values: ArrayLike | Tensor, what: str = "inputs") -> Tensor:
    """A copy of inputs; floating-point numbers keep their precision, others become float32.

    Args:
        values: (samples, ...) numbers.
        what: name of the inputs, for errors.

    Raises:
        TypeError: see `real_array`.
        ValueError: there is no axis of samples.
    """
    array = real_array(values, what)
    sizes = {2: torch.float16, 4: torch.float32}
    kept = sizes.get(array.dtype.itemsize, torch.float64)
    return _copied(array, kept if array.dtype.kind == "f" else torch.float32, what)


def targets_tensor(values: ArrayLike | Tensor, what: str = "targets") -> Tensor:
    """A copy of targets; floating-point numbers keep their precision, others become int64.

    Args:
        values: (samples,) classes, (samples, outputs) numbers, or (samples, labels) of 0 and 1.
        what: name of the targets, for errors.

    Raises:
        TypeError: see `real_array`.
        ValueError: there is no axis of samples, or a whole number is too large for int64.
    """
    array = real_array(values, what)
    if array.dtype.kind == "f":
        return inputs_tensor(array, what)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{what} must be below 2**63, got {array.max()}")
    return _copied(array, torch.int64, what)


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


def _copied(array: NDArray[np.generic], dtype: torch.dtype, what: str) -> Tensor:
    if array.ndim == 0:
        raise ValueError(f"{what} must have one row per sample, got a single number")
    with torch.inference_mode(False):  # where gradients may pass later
        tensor = torch.empty(array.shape, dtype=dtype, device="cpu")
    tensor.numpy()[...] = array
    return tensor
