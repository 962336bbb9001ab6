"""What a run cost in units of FedAvg: models stored, sent and run by a client.

The thesis of WeCFL compares methods so (Ma 2024, Table 7.6): IFCA with 10 clusters costs ten times
as much as FedAvg. Here the numbers come from what was really sent, so a model that did not change
and was not sent again costs nothing, and a prior of a posterior costs as much as a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bcfl import Model, RoundRecord
from bcfl.federation.ledger import FLOAT_BYTES


@dataclass(frozen=True)
class RelativeCost:
    """Cost of a run; FedAvg's are all 1.

    Attributes:
        storage: payload that a client is sent in a round, in the round where it is largest.
        communication: payload that a client is sent in a round, mean over rounds.
        computation: parameters of the distinct networks that a client evaluates or trains in a
            round, mean over rounds; however often it does.
    """

    storage: float
    communication: float
    computation: float


def relative_cost(records: Sequence[RoundRecord], model: Model) -> RelativeCost:
    """What a run cost, mean over the clients that took part.

    Args:
        records: of all rounds.
        model: the architecture that the federation was given, as FedAvg would use it.

    Raises:
        ValueError: nobody took part in any round.
    """
    asked = [record for record in records if record.participants]
    if not asked:
        raise ValueError("records must hold a round with participants, got none")
    layout = model.layout
    payload = FLOAT_BYTES * (layout.num_parameters + layout.num_buffers)
    sent = [r.ledger.bytes_down / (len(r.participants) * payload) for r in asked]
    ran = [r.ledger.parameters_run / (len(r.participants) * layout.num_parameters) for r in asked]
    return RelativeCost(max(sent), sum(sent) / len(sent), sum(ran) / len(ran))
