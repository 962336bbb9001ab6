"""Which cluster's model supports which other cluster: the cluster support of FAACL.

"Asymmetric clustering in federated continual learning", section 3.2 and algorithm 2. Support is
directed: a cluster with few or noisy samples may be supported by one that it cannot support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, ClassVar

from bcfl.data.clients import VALIDATION
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.protocol.requests import Exchange, Replies, Score, Steps
from bcfl.protocol.statistics.support import PairedSupport, SupportTest, TestedLoss

Pair = tuple[int, int]
"""The cluster that is supported, and its supporter."""


@dataclass(frozen=True)
class Support:
    """The directed support between clusters.

    Attributes:
        p_values: largest p-value over the devices of the supported cluster, for each (supported,
            supporter); pairs without support are left out.
    """

    KEY: ClassVar[str] = "supports"
    p_values: Mapping[Pair, float] = field(default_factory=dict)

    def supporters(self, cluster: int) -> list[int]:
        """The clusters that support one, sorted."""
        return sorted(supporter for own, supporter in self.p_values if own == cluster)

    def mutual(self, one: int, other: int) -> bool:
        """Whether two clusters support each other."""
        return (one, other) in self.p_values and (other, one) in self.p_values

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Support:
        """What a hypothesis remembers."""
        return cls({(own, other): p for own, other, p in state.get(cls.KEY, [])})

    @property
    def state(self) -> list[list[float]]:
        """What a hypothesis is to remember: (supported, supporter, p-value), sorted."""
        return [[*pair, p] for pair, p in sorted(self.p_values.items())]


@dataclass(frozen=True)
class Findings:
    """What one round of tests found.

    Attributes:
        support: who supports whom.
        num_tests: answered tests.
        unable: devices with too few pairs for any p-value to reach the level.
        complete: every pair of clusters of a partition was tested.
    """

    support: Support
    num_tests: int
    unable: tuple[str, ...]
    complete: bool


@dataclass(frozen=True)
class SupportTesting:
    """When a cluster's model supports another cluster: all devices there must find it no worse.

    Attributes:
        epsilon: by how much the supporter's model may be worse, nats per sample. The thesis takes
            0.1 to 0.7, by data set (table B.1).
        alpha: significance level; the thesis gives none, its program has 0.1.
        loss: `raw` losses (the program's last version), or `capped` ones, where every wrongly
            classified sample costs log(classes). Both are without the program's L2 penalty.
        withdraws: whether a supporter that fails a later test is one no more. Algorithm 2 and the
            program only ever add supporters, as long as both clusters live.
    """

    epsilon: float = 0.7
    alpha: float = 0.1
    loss: TestedLoss = "raw"
    withdraws: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < float("inf"):
            raise ValueError(f"epsilon must be finite and at least 0, got {self.epsilon}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, got {self.alpha}")
        if self.loss not in ("raw", "capped"):
            raise ValueError(f"loss must be 'raw' or 'capped', got {self.loss!r}")

    def find(
        self,
        models: Sequence[Posterior],
        members: Sequence[Sequence[str]],
        partitions: Sequence[int],
        before: Support,
        context: RoundContext,
    ) -> Steps[Findings]:
        """Test every ordered pair of clusters within each partition, on validation samples.

        Devices that do not answer have no vote. Supporters that fail the test stay with the p-value
        that they had, unless support is withdrawn; where nobody in a cluster has a vote, all do.

        Args:
            models: model of each cluster.
            members: devices of each cluster.
            partitions: partition of each cluster.
            before: support as it was found last.
            context: the round.
        """
        present = set(context.validating(context.participants))
        voters = [sorted(present & set(one)) for one in members]
        pairs = list(_pairs(partitions))
        asked = {pair: [self._score(c, models, pair) for c in voters[pair[0]]] for pair in pairs}
        scores = [score for row in asked.values() for score in row]
        replies = (yield Exchange.of(scores, models)) if scores else {}
        answers = {pair: _answers(row, replies) for pair, row in asked.items()}
        return self._findings(answers, before)

    def _score(self, client: str, models: Sequence[Posterior], pair: Pair) -> Score:
        own, offered = (models[index].key for index in pair)
        return self.score(client, own, offered, VALIDATION)

    def score(
        self, client: str, own: str, offered: str, view: str, samples: int | None = None
    ) -> Score:
        """Ask a client whether a model is no worse for it than its own.

        Args:
            client: its name.
            own: key of its own model.
            offered: key of the other one.
            view: which of its samples.
            samples: at most so many of them; None is all.
        """
        statistic = PairedSupport(self.epsilon, self.loss)
        return Score(client, (own, offered), statistic, view, samples)

    def _findings(
        self, answers: Mapping[Pair, Mapping[str, SupportTest]], before: Support
    ) -> Findings:
        p_values: dict[Pair, float] = {}
        usable: dict[str, int] = {}
        for pair, row in answers.items():
            largest = max((test.p_value for test in row.values()), default=1.0)
            if row and largest <= self.alpha:
                p_values[pair] = largest
            elif pair in before.p_values and not (row and self.withdraws):
                p_values[pair] = before.p_values[pair]
            for client, test in row.items():
                usable[client] = max(usable.get(client, 0), test.num_pairs)
        unable = tuple(client for client, pairs in usable.items() if 0.5**pairs > self.alpha)
        count = sum(len(row) for row in answers.values())
        return Findings(Support(p_values), count, unable, all(answers.values()))


def _pairs(partitions: Sequence[int]) -> Iterator[Pair]:
    for pair in permutations(range(len(partitions)), 2):
        if partitions[pair[0]] == partitions[pair[1]]:
            yield pair


def _answers(scores: Sequence[Score], replies: Replies) -> dict[str, SupportTest]:
    return {score.client: replies[score] for score in scores if score in replies}
