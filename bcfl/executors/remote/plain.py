"""Values of the protocol as JSON and named arrays, and back; nothing is pickled.

Requests, statistics, objectives and answers are frozen dataclasses of numbers, text, tuples,
mappings and tensors. Each travels as the name of its class and its fields, so a receiver makes only
objects of the classes listed here, by their constructors.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array: TypeAlias = NDArray[Any]
Json: TypeAlias = Any
PACKAGES = ("bcfl.protocol", "bcfl.architecture", "posteriors.predictive")
"""Frozen dataclasses that these define can be sent."""
DTYPES = ("float32", "float64", "int64", "bool")


@cache
def sendable() -> Mapping[str, type[Any]]:
    """The classes whose values can be sent, by name.

    Raises:
        ValueError: two of them have the same name.
    """
    found: dict[str, type[Any]] = {}
    for package in PACKAGES:
        root = import_module(package)
        names = [package, *(m.name for m in walk_packages(root.__path__, f"{package}."))]
        for kind in (kind for name in names for kind in vars(import_module(name)).values()):
            if _is_own(kind, names) and found.setdefault(kind.__name__, kind) is not kind:
                raise ValueError(f"two classes of the protocol are named {kind.__name__}")
    return found


def _is_own(kind: object, modules: Sequence[str]) -> bool:
    """Whether it is a public dataclass that one of the modules defines."""
    return (
        isinstance(kind, type)
        and is_dataclass(kind)
        and kind.__module__ in modules
        and not kind.__name__.startswith("_")
    )


def to_plain(value: object, arrays: MutableMapping[str, Array]) -> Json:
    """A value as JSON, its tensors and arrays moved to a table.

    Args:
        value: to send.
        arrays: table to which arrays are added, under running numbers.

    Raises:
        TypeError: the value, or a part of it, is of a class that is not sent.
    """
    match value:
        case np.generic():
            return value.item()
        case None | bool() | int() | float() | str():
            return value
        case Tensor() | np.ndarray():
            name = str(len(arrays))
            arrays[name] = to_array(value) if isinstance(value, Tensor) else value
            return {"tensor" if isinstance(value, Tensor) else "array": name}
        case tuple() | list():
            return [to_plain(item, arrays) for item in value]
        case Mapping():
            items = [[to_plain(k, arrays), to_plain(v, arrays)] for k, v in value.items()]
            return {"items": items}
    kind = type(value).__name__
    if sendable().get(kind) is not type(value):
        raise TypeError(f"values of class {kind} cannot be sent to clients elsewhere")
    own = {f.name: to_plain(getattr(value, f.name), arrays) for f in fields(value) if f.init}  # type: ignore[arg-type]
    return {"kind": kind, "fields": own}


def of_plain(plain: Json, arrays: Mapping[str, Array]) -> Any:  # noqa: ANN401 - any value
    """The value that was sent; sequences become tuples.

    Args:
        plain: from `to_plain`.
        arrays: the table that came with it.

    Raises:
        ValueError: it is not from `to_plain`, or its class refuses its fields.
        KeyError: an array is missing.
        TypeError: fields of a class are missing or unknown.
    """
    match plain:
        case None | bool() | int() | float() | str():
            return plain
        case list():
            return tuple(of_plain(item, arrays) for item in plain)
        case {"tensor": name}:
            return to_tensor(arrays[name])
        case {"array": name}:
            return arrays[name]
        case {"items": list() as items}:
            return {of_plain(k, arrays): of_plain(v, arrays) for k, v in items}
        case {"kind": str() as kind, "fields": dict() as own} if kind in sendable():
            return sendable()[kind](**{name: of_plain(v, arrays) for name, v in own.items()})
    raise ValueError("a message holds a value of an unknown kind")


def to_array(tensor: Tensor) -> Array:
    """The numbers of a tensor in the memory of the processor."""
    array: Array = tensor.detach().cpu().contiguous().numpy()
    return array


def to_tensor(array: Array) -> Tensor:
    """A tensor of its own memory with the numbers of an array.

    Raises:
        ValueError: numbers of a type that no answer has.
    """
    if array.dtype.name not in DTYPES:
        raise ValueError(f"an array must be one of {', '.join(DTYPES)}, got {array.dtype.name}")
    tensor = torch.empty(array.shape, dtype=getattr(torch, array.dtype.name))
    tensor.numpy()[...] = array
    return tensor
