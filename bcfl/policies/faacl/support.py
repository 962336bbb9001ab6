"""Directed cluster support by Wilcoxon tests (FAACL, section 3.2 and algorithm 2).

"Asymmetric clustering in federated continual learning". A cluster with few or noisy samples may be
supported by one that it cannot support itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, ClassVar

from bcfl.data.names import VALIDATION
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
        """Clusters that support the given one, sorted."""
        return sorted(supporter for own, supporter in self.p_values if own == cluster)

    def mutual(self, first: int, second: int) -> bool:
        """Whether two clusters support each other.

        Args:
            first: index of one cluster.
            second: index of the other.
        """
        return (first, second) in self.p_values and (second, first) in self.p_values

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Support:
        """Read from the state of a hypothesis."""
        return cls({(own, other): p for own, other, p in state.get(cls.KEY, [])})

    @property
    def state(self) -> list[list[float]]:
        """As stored in the state of a hypothesis: (supported, supporter, p-value), sorted."""
        return [[*pair, p] for pair, p in sorted(self.p_values.items())]


@dataclass(frozen=True)
class Findings:
    """Results of one round of tests.

    Attributes:
        support: directed support between the clusters.
        num_tests: number of answered tests.
        unable: devices with too few pairs for any p-value to reach the significance level.
        complete: whether every pair of clusters of each partition was tested.
    """

    support: Support
    num_tests: int
    unable: tuple[str, ...]
    complete: bool


@dataclass(frozen=True)
class SupportTesting:
    """Non-inferiority tests of a cluster's model on all devices of another cluster.

    A cluster supports another one if no device there rejects its model as worse than its own.

    Attributes:
        epsilon: non-inferiority margin, nats per sample. The thesis takes 0.1 to 0.7, by data set
            (table B.1).
        alpha: significance level; not given in the thesis, 0.1 in the author's code.
        loss: `raw` losses (the author's latest code), or `capped` ones, where each misclassified
            sample costs log(classes). Both are without the L2 penalty of the author's code.
        withdraws: whether a supporter that fails a later test is removed. Algorithm 2 and the
            author's code only add supporters, as long as both clusters exist.
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

        Devices that do not answer have no vote. Supporters that fail the test keep their earlier
        p-value unless support is withdrawn; so do all supporters of a cluster without votes, and
        pairs that are not tested because their clusters are of different partitions.

        Args:
            models: model of each cluster.
            members: devices of each cluster.
            partitions: partition of each cluster.
            before: support found by the previous tests.
            context: read-only context of the round.
        """
        present = set(context.validating(context.participants))
        voters = [sorted(present & set(devices)) for devices in members]
        pairs = list(_pairs(partitions))
        tests = {pair: [self._score(c, models, pair) for c in voters[pair[0]]] for pair in pairs}
        scores = [score for row in tests.values() for score in row]
        replies = (yield Exchange.of(scores, models)) if scores else {}
        answers = {pair: _answers(row, replies) for pair, row in tests.items()}
        return self._findings(answers, before)

    def _score(self, client: str, models: Sequence[Posterior], pair: Pair) -> Score:
        own, offered = (models[index].key for index in pair)
        return self.score(client, own, offered, VALIDATION)

    def score(
        self, client: str, own: str, offered: str, view: str, samples: int | None = None
    ) -> Score:
        """Request a test whether a model is no worse for a client than its own.

        Args:
            client: name of the client.
            own: key of its own model.
            offered: key of the other model.
            view: view of the client's samples.
            samples: largest number of samples; None is all.
        """
        statistic = PairedSupport(self.epsilon, self.loss)
        return Score(
            client=client, models=(own, offered), statistic=statistic, view=view, samples=samples
        )

    def _findings(
        self, answers: Mapping[Pair, Mapping[str, SupportTest]], before: Support
    ) -> Findings:
        p_values = dict(before.p_values)
        usable: dict[str, int] = {}
        for pair, row in answers.items():
            largest = max((test.p_value for test in row.values()), default=1.0)
            if row and largest <= self.alpha:
                p_values[pair] = largest
            elif row and self.withdraws:
                p_values.pop(pair, None)
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
