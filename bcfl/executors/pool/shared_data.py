"""Clients' samples in one file that any number of processes map into their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from bcfl.data.clients import ClientData
from bcfl.data.view import View
from bcfl.executors.sequential.flat_module import ALIGNMENT, aligned


@dataclass(frozen=True)
class Place:
    """Position of a tensor in the file.

    Attributes:
        start: first byte, a multiple of `ALIGNMENT`.
        shape: of the tensor.
        dtype: of its numbers.
    """

    start: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    def of(self, memory: Tensor) -> Tensor:
        """The tensor, inside memory (bytes,) uint8."""
        count = torch.Size(self.shape).numel() * self.dtype.itemsize
        return memory[self.start : self.start + count].view(self.dtype).view(self.shape)


@dataclass(frozen=True)
class SharedData:
    """Positions of all clients' samples in the shared file.

    Attributes:
        path: the file; its writer removes it.
        size: bytes of the file.
        places: by client, then view: of the inputs, and of the targets.
        groups: true groups by client.
    """

    path: str
    size: int
    places: Mapping[str, Mapping[str, tuple[Place, Place]]]
    groups: Mapping[str, int | None]

    @classmethod
    def write(cls, clients: Sequence[ClientData], dtype: torch.dtype, path: Path) -> SharedData:
        """Write the samples of all clients.

        Args:
            clients: the clients.
            dtype: floating-point type that they take.
            path: the file to create.
        """
        cpu = torch.device("cpu")
        places: dict[str, dict[str, tuple[Place, Place]]] = {}
        with path.open("wb") as file:
            for data in clients:
                places[data.client] = {
                    name: (
                        _append(file, aligned(view.inputs, cpu, dtype)),
                        _append(file, aligned(view.targets, cpu, dtype)),
                    )
                    for name, view in data.views.items()
                }
            size = file.tell()
        return cls(str(path), size, places, {data.client: data.group for data in clients})

    def open(self) -> dict[str, ClientData]:
        """The clients by name; their tensors are memory-mapped."""
        memory = torch.from_file(self.path, shared=False, size=self.size, dtype=torch.uint8)
        return {
            client: ClientData(
                client,
                {
                    name: View(inputs.of(memory), targets.of(memory))
                    for name, (inputs, targets) in views.items()
                },
                self.groups[client],
            )
            for client, views in self.places.items()
        }


def _append(file: BinaryIO, tensor: Tensor) -> Place:
    file.write(bytes(-file.tell() % ALIGNMENT))
    place = Place(file.tell(), tuple(tensor.shape), tensor.dtype)
    file.write(tensor.numpy().data.cast("B") if tensor.numel() else b"")
    return place
