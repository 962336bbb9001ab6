"""Ensembles of methods by name, such as `fedavg+ifca` (Ma 2023, table 7.5)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bcfl.rounds.method import Method

JOINING = "+"


def ensemble(parts: "Sequence[Method]", name: str) -> "Method":
    """Methods that run side by side; the logits of what serves a client are averaged.

    Args:
        parts: at least two methods, each with one hypothesis and the network of the federation.
        name: of the ensemble.

    Raises:
        ValueError: a method follows several hypotheses, aggregates in a way of its own, scores by
            cavities or makes a network of its own, or some are fine-tuned and some are not.
    """
    from bcfl.aggregation.aggregation import Aggregation
    from bcfl.policies.baselines.side_by_side import SideBySide
    from bcfl.rounds.method import Method
    from bcfl.trackers import Greedy

    for part in parts:
        greedy = part.tracker == Greedy() and part.starts == 1 and not part.finds_number
        plain = part.aggregation == Aggregation() and part.architecture is None
        if not (greedy and plain) or getattr(part.policy, "scored_by", "cluster") != "cluster":
            raise ValueError(
                f"method {name!r} must join methods with one hypothesis, plain aggregation, no "
                "cavities and the network of the federation, such as 'fedavg' and 'ifca', got "
                f"{part.name!r}"
            )
    tuned = [part.finetuned for part in parts if part.finetuned is not None]
    if tuned and len(tuned) < len(parts):
        raise ValueError(f"method {name!r} must have -finetune in all of its parts, or in none")
    return Method(
        policy=SideBySide(tuple(part.policy for part in parts)),
        name=name,
        validation=max(part.validation for part in parts),
        calibration=max(part.calibration for part in parts),
        pooling="logits",
        belief_temperature=None,
        finetuned=tuned[0] if tuned else None,
    )
