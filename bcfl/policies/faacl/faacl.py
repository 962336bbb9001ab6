"""FAACL, flat and hierarchical: clusters trained by their members and their supporters.

"Asymmetric clustering in federated continual learning", chapter 3, algorithms 1 to 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.random import Generator

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.faacl.mutual_merge import AfterMerge, Clustering, merge_mutual
from bcfl.policies.faacl.support import Findings, Support, SupportTesting
from bcfl.policies.policy import Candidate, Continue, Given, Origin, Ranking, candidate
from bcfl.policies.trainings import trainings
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps, Train
from bcfl.protocol.statistics.support import PairedSupport
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import generator


def paired(partitions: Sequence[int], rng: Generator | None = None) -> tuple[int, ...]:
    """Join partition i with partition last - i; the middle one of an odd number is left alone.

    Args:
        partitions: partition of each cluster, numbered from 0 without gaps.
        rng: numbers the partitions anew at random first; None keeps their numbers.
    """
    last = max(partitions, default=0)
    numbers = range(last + 1) if rng is None else rng.permutation(last + 1).tolist()
    return tuple(min(numbers[index], last - numbers[index]) for index in partitions)


def num_levels(devices: int) -> int:
    """Number of levels from one partition per device to one for all: ceil(log2 devices) + 1."""
    return (max(devices, 1) - 1).bit_length() + 1


@dataclass(frozen=True)
class LevelSchedule:
    """Levels of the hierarchy that are tested in each round.

    Each level has `repeats` passes, one per round, or fewer if there are too few rounds; with fewer
    rounds than levels, several levels are passed in one round.

    Attributes:
        levels: number of levels, at least 1.
        rounds: number of available rounds, at least 1.
        repeats: largest number of passes per level.
    """

    levels: int
    rounds: int
    repeats: int = 3

    def __post_init__(self) -> None:
        for name in ("levels", "rounds", "repeats"):
            check_whole(name, getattr(self, name))

    def at(self, step: int) -> tuple[int, ...]:
        """Levels, from 0, of the passes of a round; none when all are done.

        Args:
            step: rounds since the first pass.
        """
        repeats = max(1, min(self.repeats, self.rounds // self.levels))
        passes = repeats * self.levels
        steps = min(passes, self.rounds)
        if not 0 <= step < steps:
            return ()
        first, end = step * passes // steps, (step + 1) * passes // steps
        return tuple(index // repeats for index in range(first, end))


INITIAL = "initial"


@dataclass(frozen=True, kw_only=True)
class FAACL:
    """Each device starts as a cluster; clusters that support each other merge.

    A cold start of local training (algorithm 1) is followed by rounds that test support, merge
    mutual supporters and train: a cluster's model is trained by its members and those of its
    supporters, and serves its members alone. The flat variant ends when neither members nor
    supporters change (algorithm 5); the hierarchical one tests clusters level by level (algorithm
    6, the last level included). Clusters and supporters are fixed afterwards.

    A later device is a new cluster, and resumes the tests for `repeats` rounds.

    With n devices that all support each other, the first test of the flat variant sends each device
    n models and takes n (n - 1) answers; n^2 / 2 local trainings follow, then n^2 / 4, n^2 / 8 and
    so on. They cannot be deduplicated, since every cluster has its own initial model. In the
    hierarchy such devices are compared in pairs that merge at once, with at most n local trainings
    per round.

    Attributes:
        objective: local objective.
        testing: the support test.
        hierarchical: whether partitions of devices are joined in pairs, level by level.
        cold_start: rounds of local training, at least one, or a share of the run below 1. The
            author's code has 50 + 18 + 300 rounds for 20 devices.
        clustering: largest number of rounds with tests, or a share of the run below 1.
        repeats: largest number of passes per level of the hierarchy.
        supporters_after_merge: see `bcfl.policies.faacl.mutual_merge.merge_mutual`.
        pairing: whether the hierarchy joins partitions at `random` (algorithm 6), or the first with
            the last, as in the author's code (`fixed`).
    """

    objective: Objective
    testing: SupportTesting = field(default_factory=SupportTesting)
    hierarchical: bool = False
    cold_start: float = 0.15
    clustering: float = 0.5
    repeats: int = 3
    supporters_after_merge: AfterMerge = "intersection"
    pairing: Literal["fixed", "random"] = "fixed"

    def __post_init__(self) -> None:
        check_round("cold_start", self.cold_start)
        check_round("clustering", self.clustering)
        check_whole("repeats", self.repeats)
        if self.supporters_after_merge not in ("intersection", "empty"):
            raise ValueError(
                "supporters_after_merge must be 'intersection' or 'empty', got "
                f"{self.supporters_after_merge!r}"
            )
        if self.pairing not in ("fixed", "random"):
            raise ValueError(f"pairing must be 'fixed' or 'random', got {self.pairing!r}")

    @property
    def num_clusters(self) -> int:
        """One, from which each device's own cluster continues."""
        return 1

    @property
    def asks(self) -> dict[str, str]:
        """Statistics that clients are asked for besides losses; no option avoids them."""
        return {PairedSupport.name: ""}

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Test and merge when due, add newcomers, and plan trainings.

        See `bcfl.policies.Policy.associate`.
        """
        before, state = Clustering.of(hypothesis), hypothesis.state
        clustering, level = before, int(state.get("level", 0))
        converged, left = bool(state.get("converged", False)), int(state.get("passes_left", 0))
        step = context.round - max(round_number(self.cold_start, context), 1)
        schedule = self._schedule(context, len(hypothesis.association.clients))
        levels = () if converged else schedule.at(step)
        if step >= 0 and not levels and left:
            levels, left = (level,), left - 1
        findings = []
        for number, wanted in enumerate(levels):
            while level < wanted:
                clustering = self._joined(clustering, level, context)
                level += 1
            clustering, result = yield from self.tested(hypothesis, clustering, number, context)
            findings.append(result)
        if findings and not self.hierarchical:
            converged = findings[-1].complete and clustering.same_as(before)
        newcomers = [c for c in context.participants if c not in before.labels]
        clustering = self._with_newcomers(clustering, newcomers, level)
        left = self.repeats if before.members and newcomers else left
        remembered = {"level": level, "converged": converged, "passes_left": left}
        chosen = self.planned(hypothesis, clustering, context)
        chosen = replace(chosen, state={**chosen.state, **remembered})
        return replace(Ranking.only(chosen), facts=support_facts(clustering, findings))

    def _joined(self, clustering: Clustering, level: int, context: RoundContext) -> Clustering:
        """The clustering with its partitions joined in pairs."""
        fixed = self.pairing == "fixed"
        rng = None if fixed else generator(context.seed, context.round, level, "pairing")
        return replace(clustering, partitions=paired(clustering.partitions, rng))

    def _schedule(self, context: RoundContext, devices: int) -> LevelSchedule:
        """Levels tested in each round after the cold start."""
        rounds = max(round_number(self.clustering, context), 1)
        levels = num_levels(devices) if self.hierarchical else 1
        repeats = self.repeats if self.hierarchical else rounds
        return LevelSchedule(levels, rounds, repeats)

    def tested(
        self, hypothesis: Hypothesis, clustering: Clustering, number: int, context: RoundContext
    ) -> Steps[tuple[Clustering, Findings]]:
        """Test support between the clusters of each partition, and merge mutual supporters, once.

        Args:
            hypothesis: holds the cluster models.
            clustering: clusters with their support.
            number: index of the pass within the round, from 0.
            context: read-only context of the round.

        Returns:
            The clustering after merging, and the results of the tests.
        """
        models = [hypothesis.clusters[source] for source in clustering.sources]
        findings = yield from self.testing.find(
            models, clustering.members, clustering.partitions, clustering.support, context
        )
        rng = generator(context.seed, context.round, number, "merge")
        supported = replace(clustering, support=findings.support)
        return merge_mutual(supported, rng, self.supporters_after_merge), findings

    def _with_newcomers(
        self, clustering: Clustering, newcomers: Iterable[str], level: int
    ) -> Clustering:
        for client in newcomers:
            alone = self.hierarchical and level == 0
            partition = max(clustering.partitions, default=-1) + 1 if alone else 0
            clustering = clustering.joined_by(client, partition)
        return clustering

    def planned(
        self, hypothesis: Hypothesis, clustering: Clustering, context: RoundContext
    ) -> Candidate:
        """Candidate in which members and supporters train a cluster's model, which serves members.

        Args:
            hypothesis: holds the cluster models.
            clustering: clusters with their support.
            context: read-only context of the round.
        """
        if not clustering.members:
            return candidate(hypothesis, {}, self.objective)
        initial = hypothesis.carried_models.get(INITIAL, hypothesis.clusters[0])
        origins: list[Origin] = [
            Continue(source) if source >= 0 else Given(initial) for source in clustering.sources
        ]
        starts = [origin.posterior(hypothesis) for origin in origins]
        rows: dict[Train, dict[int, float]] = {}
        models: list[Posterior] = [initial]
        for index, start in enumerate(starts):
            devices = contributors(clustering, index, context.participants)
            keys = dict.fromkeys(devices, start.key)
            work = trainings(hypothesis, keys, self.objective, context.num_samples)
            models += work.models
            for request in work.requests:
                rows.setdefault(request, {})[index] = 1.0
        contribution_weights = np.zeros((len(rows), len(starts)))
        for row, columns in enumerate(rows.values()):
            contribution_weights[row, list(columns)] = 1.0
        clients = hypothesis.association.clients
        labels = np.array([clustering.labels.get(client, -1) for client in clients])
        all_seen = bool((labels >= 0).all())
        return Candidate(
            association=Association(clients, labels, len(starts)),
            trainings=tuple(rows),
            contribution_weights=contribution_weights,
            origins=tuple(origins),
            state={
                "partitions": list(clustering.partitions),
                Support.KEY: clustering.support.state,
            },
            models=tuple(models),
            carried_models={} if all_seen else {INITIAL: initial},
        )


def contributors(clustering: Clustering, cluster: int, participants: Iterable[str]) -> list[str]:
    """Participants that train a cluster's model: its members and those of its supporters.

    A cluster without members is not trained, and stays as it is for a concept that may come back.

    Args:
        clustering: clusters with their support.
        cluster: index of the cluster.
        participants: names of the participants.
    """
    if not clustering.members[cluster]:
        return []
    clusters = [cluster, *clustering.support.supporters(cluster)]
    devices = {client for index in clusters for client in clustering.members[index]}
    return sorted(devices & set(participants))


def support_facts(clustering: Clustering, findings: list[Findings]) -> Mapping[str, float]:
    """Numbers to log; devices with too few samples for any significant test are a warning.

    Args:
        clustering: clusters with their support.
        findings: results of the tests of the round.
    """
    facts = {
        "clusters": float(len(clustering.members)),
        "supports": float(len(clustering.support.p_values)),
    }
    if findings:
        facts["support_tests"] = float(sum(result.num_tests for result in findings))
        unable = {client for result in findings for client in result.unable}
        facts["devices_with_too_few_pairs"] = float(len(unable))
    return facts
