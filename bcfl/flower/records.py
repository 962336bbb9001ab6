"""Messages as Flower's records. Imports Flower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from bcfl.executors import Payload

TEXT, ARRAYS, UNREADABLE = "text", "arrays", Payload("", {})
NONE: Mapping[str, Array] = {}


@dataclass(frozen=True, eq=False)
class Decoded(Mapping[str, NDArray[Any]]):
    """Arrays of a record, decoded when they are read.

    Attributes:
        record: arrays as Flower has them, by name.
    """

    record: Mapping[str, Array]

    def __getitem__(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = self.record[name].numpy()
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.record)

    def __len__(self) -> int:
        return len(self.record)


def encoded(arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Array]) -> ArrayRecord:
    """Arrays as a record.

    Args:
        arrays: by name.
        known: those that are encoded already, by name.
    """
    return ArrayRecord(
        {
            name: known[name] if name in known else Array(np.asarray(array, order="C"))
            for name, array in arrays.items()
        }
    )


def to_records(payload: Payload, known: Mapping[str, Array] = NONE) -> RecordDict:
    """The message as records: one of text, one of arrays.

    Args:
        payload: the message.
        known: arrays that are encoded already, by name.
    """
    text = ConfigRecord({TEXT: payload.text})
    return RecordDict({TEXT: text, ARRAYS: encoded(payload.arrays, known)})


def all_to_records(payloads: Sequence[Payload]) -> list[RecordDict]:
    """Messages as records; an array that several of them share is encoded once."""
    arrays = {id(array): array for payload in payloads for array in payload.arrays.values()}
    once = {key: Array(np.asarray(array, order="C")) for key, array in arrays.items()}
    return [to_records(p, {name: once[id(a)] for name, a in p.arrays.items()}) for p in payloads]


def arrays_of(records: RecordDict) -> Mapping[str, Array]:
    """The arrays of a message as Flower has them; none where it is of something else."""
    arrays: Mapping[str, Array] = records.array_records.get(ARRAYS, NONE)
    return arrays


def of_records(records: RecordDict) -> Payload:
    """The message of records; an empty one where they are of something else."""
    try:
        arrays = {name: array.numpy() for name, array in records.array_records[ARRAYS].items()}
        return Payload(str(records.config_records[TEXT][TEXT]), arrays)
    except Exception:  # anything may come over a network
        return UNREADABLE
