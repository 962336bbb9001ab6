"""Rules on which hypotheses may live on, besides their weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.trackers.tracker import Successor


@dataclass(frozen=True)
class AncestorQuota:
    """In the first rounds, each start keeps its best successor, whatever its weight.

    Early weights say little: a start that will lead to the true groups may look bad at first. On
    digits two to eight starts with quota find the groups as proposals do, at 1.4 to 3.9 times the
    trainings (`experiments.studies.tracker_ablation`), so no tracker has it by default.

    Attributes:
        rounds: how many rounds the quota holds.
    """

    rounds: int = 8

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds}")

    def extended(
        self,
        kept: Sequence[Successor],
        successors: Sequence[Successor],
        parents: Sequence[Hypothesis],
        round: int,
    ) -> list[Successor]:
        """`kept`, and the best successor of each start that has none in it.

        Args:
            kept: successors that live on by weight.
            successors: all successors, most probable first.
            parents: hypotheses that they follow.
            round: number of the round.
        """
        if round >= self.rounds:
            return list(kept)
        served = {start(parents, successor) for successor in kept}
        spared = []
        for successor in successors:
            if start(parents, successor) not in served:
                served.add(start(parents, successor))
                spared.append(successor)
        return [*kept, *spared]


def start(parents: Sequence[Hypothesis], successor: Successor) -> int:
    """Which of the initial hypotheses a successor descends from."""
    lineage = parents[successor.parent].lineage
    return lineage[0] if lineage else successor.parent


@dataclass(frozen=True)
class NScan:
    """Decide, a few rounds later, which of the ancestors was right.

    Of the hypotheses that descend from different ancestors `depth` rounds ago only the family with
    the most weight lives on (N-scan pruning of multi-hypothesis tracking). In the ablation it saved
    at most a twentieth of the trainings and changed no group, so it is off by default.

    Attributes:
        depth: how many rounds back.
    """

    depth: int = 5

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ValueError(f"depth must be at least 1, got {self.depth}")

    def pruned(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The family with the most weight; all of them while the past is too short."""
        families: dict[int, list[Hypothesis]] = defaultdict(list)
        for one in hypotheses:
            if len(one.lineage) < self.depth:
                return list(hypotheses)
            families[one.lineage[-self.depth]].append(one)
        return max(
            families.values(),
            key=lambda family: np.logaddexp.reduce([h.log_weight for h in family]),
        )
