"""Cost of a run in units of FedAvg: models stored, sent and run by a client.

The thesis of WeCFL compares methods so (Ma 2023, Table 7.6): IFCA with 10 clusters costs ten times
as much as FedAvg. Here the numbers come from what was really sent, so a model that did not change
and was not sent again costs nothing, and a prior of a posterior costs as much as a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcfl import Model, RoundRecord

PER_ROUND = ("models_sent", "models_run")


@dataclass(frozen=True)
class RelativeCost:
    """Cost of a run; FedAvg's are all 1.

    Attributes:
        storage: payload that a client is sent in a round, in the round where it is largest.
        communication: payload that a client is sent in a round, mean over rounds; what it sends
            back is not in it.
        computation: networks run, which is no time: parameters of the distinct networks that a
            client scores or trains in a round, mean over rounds. A network that is both scored and
            trained counts once, and one that is only scored counts as much as one that is trained.
    """

    storage: float
    communication: float
    computation: float


def models_used(record: RoundRecord, model: Model | None) -> dict[str, float | None]:
    """Models sent to and run by a participant in a round, in units of FedAvg's model.

    Args:
        record: of the round.
        model: the architecture as FedAvg would use it.

    Returns:
        `models_sent` and `models_run`, unknown where no client took part or there is no model.
    """
    if model is None or not record.participants:
        return dict.fromkeys(PER_ROUND)
    from bcfl.protocol import FLOAT_BYTES

    layout, num_clients = model.layout, len(record.participants)
    payload = FLOAT_BYTES * (layout.num_parameters + layout.num_buffers)
    return {
        "models_sent": record.ledger.bytes_down / (num_clients * payload),
        "models_run": record.ledger.parameters_run / (num_clients * layout.num_parameters),
    }


def over_rounds(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The cost of a run by name, from the rows of its rounds; None where no row has it."""
    cost = _cost(rows)
    names = RelativeCost.__dataclass_fields__
    return dict.fromkeys(names) if cost is None else asdict(cost)


def traffic(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Payload of all clients in a round, down and up, MB: of the first, mean and largest.

    The first round of many methods sends all models, and later ones those that have changed.

    Args:
        rows: of the rounds, at least one; of a round that is not known, all are None.
    """
    if any(row["bytes_down"] is None for row in rows):
        return dict.fromkeys(("traffic_first", "traffic_mean", "traffic_peak"))
    sent = [(row["bytes_down"] + row["bytes_up"]) / 1e6 for row in rows]
    return {
        "traffic_first": sent[0],
        "traffic_mean": sum(sent) / len(sent),
        "traffic_peak": max(sent),
    }


def _cost(rows: Sequence[Mapping[str, Any]]) -> RelativeCost | None:
    """The cost over the rounds with participants."""
    known = [
        (row["models_sent"], row["models_run"])
        for row in rows
        if all(row.get(name) is not None for name in PER_ROUND)
    ]
    if not known:
        return None
    sent, ran = zip(*known, strict=True)
    return RelativeCost(max(sent), sum(sent) / len(sent), sum(ran) / len(ran))
