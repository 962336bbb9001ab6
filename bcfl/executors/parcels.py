"""Values as bytes between processes: tensors travel as the numbers they show, and no more."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch
from cloudpickle import CloudPickler
from torch import Tensor


class _Packer(CloudPickler):  # type: ignore[misc]
    """A view of a large tensor would otherwise take all of it along."""

    def reducer_override(self, value: object) -> Any:  # noqa: ANN401 - what pickle asks for
        if type(value) is Tensor:
            return torch.from_numpy, (value.detach().contiguous().numpy(),)
        return super().reducer_override(value)


def packed(value: object) -> bytes:
    """The value as bytes for `unpacked`; functions and classes of scripts go along.

    Raises:
        TypeError: something in it is bound to this process, such as an open file.
    """
    buffer = io.BytesIO()
    _Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """The value that was packed by another process of this program."""
    return pickle.loads(data)
