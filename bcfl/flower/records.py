"""Messages as Flower's records. Imports Flower."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from bcfl.executors import Payload

TEXT, ARRAYS, UNREADABLE = "text", "arrays", Payload("", {})


def to_records(payload: Payload) -> RecordDict:
    """The message as records: one of text, one of arrays."""
    arrays = {name: Array(np.asarray(array, order="C")) for name, array in payload.arrays.items()}
    return RecordDict({TEXT: ConfigRecord({TEXT: payload.text}), ARRAYS: ArrayRecord(arrays)})


def of_records(records: RecordDict) -> Payload:
    """The message of records; an empty one where they are of something else."""
    try:
        arrays = {name: array.numpy() for name, array in records.array_records[ARRAYS].items()}
        return Payload(str(records.config_records[TEXT][TEXT]), arrays)
    except Exception:  # anything may come over a network
        return UNREADABLE
