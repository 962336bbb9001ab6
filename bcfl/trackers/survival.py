"""Rules of survival besides weight: quotas per initial hypothesis and N-scan pruning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.runtime import check_whole
from bcfl.trackers.successors import Successor


@dataclass(frozen=True)
class AncestorQuota:
    """In the first rounds, each initial hypothesis keeps its best successor, whatever its weight.

    Early weights carry little information: a start that leads to the true groups may be improbable
    at first. On digits two to eight starts with a quota find the groups as proposals do, with 1.4
    to 3.9 times the local trainings (`experiments.studies.tracker_ablation`), so no tracker uses
    it by default.

    Attributes:
        rounds: how many rounds the quota holds.
    """

    rounds: int = 8

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)

    def extended(
        self,
        kept: Sequence[Successor],
        successors: Sequence[Successor],
        parents: Sequence[Hypothesis],
        round: int,
    ) -> list[Successor]:
        """`kept`, and the best successor of each initial hypothesis that has none in it.

        Args:
            kept: successors that survive by weight.
            successors: all successors, most probable first.
            parents: hypotheses that they follow.
            round: number of the round.
        """
        if round >= self.rounds:
            return list(kept)
        represented = {start(parents, successor) for successor in kept}
        added = []
        for successor in successors:
            if start(parents, successor) not in represented:
                represented.add(start(parents, successor))
                added.append(successor)
        return [*kept, *added]


def start(parents: Sequence[Hypothesis], successor: Successor) -> int:
    """Index of the initial hypothesis that a successor descends from.

    Args:
        parents: hypotheses before the round.
        successor: follows one of them.
    """
    lineage = parents[successor.parent].lineage
    return lineage[0] if lineage else successor.parent


@dataclass(frozen=True)
class NScan:
    """N-scan pruning: ambiguities of N rounds ago are resolved by present weights (Reid, 1979).

    Only the descendants of the ancestor with the largest total weight survive. In the ablation it
    saved at most a twentieth of the local trainings and changed no group, so it is off by default.

    Attributes:
        depth: N, the number of rounds after which ancestors are decided on.
    """

    depth: int = 5

    def __post_init__(self) -> None:
        check_whole("depth", self.depth)

    def pruned(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The heaviest branch; all hypotheses while fewer than `depth` rounds have passed.

        Args:
            hypotheses: after a round.
        """
        branches: dict[int, list[Hypothesis]] = defaultdict(list)
        for hypothesis in hypotheses:
            if len(hypothesis.lineage) < self.depth:
                return list(hypotheses)
            branches[hypothesis.lineage[-self.depth]].append(hypothesis)
        return max(
            branches.values(),
            key=lambda branch: np.logaddexp.reduce([h.log_weight for h in branch]),
        )
