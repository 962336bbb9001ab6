"""Search for recurring concepts (C-FAACL, algorithms 8 and 9).

"Asymmetric clustering in federated continual learning". As printed the tests have neither margin
nor direction, and testing a device's new model on its own training data is uninformative. Here a
device and a cluster match if each supports the other: the cluster's model on the device's new data,
and the device's model on earlier data of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bcfl.data.names import VALIDATION, VALIDATION_MEMORY
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.faacl.support import SupportTesting
from bcfl.protocol.requests import Exchange, Score, Steps
from bcfl.protocol.statistics.support import SupportTest
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import generator


@dataclass(frozen=True, order=True)
class Memory:
    """Membership of a device in a cluster in an earlier time step.

    Attributes:
        step: number of the time step, from 0.
        device: name of the device.
        cluster: present index of the cluster.
    """

    step: int
    device: str
    cluster: int


@dataclass(frozen=True)
class ConceptMemory:
    """Memberships of earlier time steps, and the time step of each device's last search.

    Attributes:
        memories: one for each device and step, sorted by time step, then device.
        searched: for each device, the time step in which it was last assigned.
    """

    memories: tuple[Memory, ...] = ()
    searched: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> ConceptMemory:
        """Read from the state of a hypothesis."""
        memories = (Memory(*row) for row in state.get("memories", []))
        return cls(tuple(memories), tuple(sorted(state.get("searched", {}).items())))

    @property
    def state(self) -> dict[str, Any]:
        """As stored in the state of a hypothesis."""
        memories = [[m.step, m.device, m.cluster] for m in self.memories]
        return {"memories": memories, "searched": dict(self.searched)}

    def of_device(self, device: str) -> list[Memory]:
        """Memories of a device, most recent first."""
        return [m for m in reversed(self.memories) if m.device == device]

    def of_cluster(self, cluster: int, devices: Iterable[str]) -> list[Memory]:
        """Memories of the most recent step in which one of the devices was in a cluster.

        Args:
            cluster: index of the cluster.
            devices: names of the devices that are considered.

        Returns:
            Memories of that step, sorted by device.
        """
        considered = set(devices)
        memories = [m for m in self.memories if m.cluster == cluster and m.device in considered]
        newest = max((m.step for m in memories), default=-1)
        return [m for m in memories if m.step == newest]

    def due(self, devices: Iterable[str], step: int) -> list[str]:
        """Devices that have not searched in a time step yet.

        Args:
            devices: names of the devices.
            step: the time step, from 0.
        """
        last = dict(self.searched)
        return [device for device in devices if last.get(device, -1) < step]

    def after(self, devices: Iterable[str], step: int) -> ConceptMemory:
        """The memory after devices have been assigned in a time step.

        Args:
            devices: names of the devices.
            step: the time step, from 0.
        """
        last = {**dict(self.searched), **dict.fromkeys(devices, step)}
        return ConceptMemory(self.memories, tuple(sorted(last.items())))

    def with_past(self, labels: Mapping[str, int], step: int) -> ConceptMemory:
        """The memory extended by the devices' memberships before a time step.

        Args:
            labels: cluster of each device, -1 without one.
            step: the present time step, from 0.
        """
        stored = {(m.device, m.step) for m in self.memories}
        new = [
            Memory(last, device, labels[device])
            for device, last in self.searched
            if last < step and (device, last) not in stored and labels.get(device, UNSEEN) != UNSEEN
        ]
        return ConceptMemory(tuple(sorted((*self.memories, *new))), self.searched)

    def reindexed(self, indices: Sequence[int]) -> ConceptMemory:
        """The memory after clusters have changed their indices, as when they merge.

        Args:
            indices: new index of each cluster.
        """
        memories = (Memory(m.step, m.device, indices[m.cluster]) for m in self.memories)
        return ConceptMemory(tuple(memories), self.searched)


@dataclass(frozen=True)
class Match:
    """Result of the two tests between a device's new concept and a cluster.

    Attributes:
        device: name of the device.
        cluster: index of the cluster.
        p_value: larger p-value of the two tests, 1 if one was not answered.
        able: whether there are enough new samples for the first test to reach significance.
    """

    device: str
    cluster: int
    p_value: float
    able: bool


@dataclass(frozen=True)
class ConceptSearch:
    """Searches for the concept of new data, first in a device's own memory, then in all clusters'.

    Attributes:
        testing: the support test.
        memory_samples: largest number of validation samples remembered of a time step.
    """

    testing: SupportTesting
    memory_samples: int = 50

    def __post_init__(self) -> None:
        check_whole("memory_samples", self.memory_samples)

    def local(
        self,
        devices: Mapping[str, Posterior],
        clusters: Sequence[Posterior],
        memory: ConceptMemory,
    ) -> Steps[list[Match]]:
        """Compare devices with all clusters of their own past (algorithm 8).

        Args:
            devices: new model of each device.
            clusters: model of each cluster.
            memory: memberships of earlier time steps.
        """
        pairs = [(device, past) for device in devices for past in memory.of_device(device)]
        return (yield from self._matches(pairs, devices, clusters))

    def everywhere(
        self,
        devices: Mapping[str, Posterior],
        clusters: Sequence[Posterior],
        memory: ConceptMemory,
        context: RoundContext,
    ) -> Steps[list[Match]]:
        """Compare devices with all clusters on data of a former member (algorithm 9).

        The member is sampled from the participants of the most recent time step; it is sent the new
        model, and its samples stay with it.

        Args:
            devices: new model of each device.
            clusters: model of each cluster.
            memory: memberships of earlier time steps.
            context: read-only context of the round.
        """
        pairs = []
        for device in devices:
            for cluster in range(len(clusters)):
                others = [other for other in context.participants if other != device]
                holders = memory.of_cluster(cluster, others)
                if holders:
                    rng = generator(context.seed, context.round, device, cluster, "witness")
                    pairs.append((device, holders[int(rng.integers(len(holders)))]))
        return (yield from self._matches(pairs, devices, clusters))

    def _matches(
        self,
        pairs: Sequence[tuple[str, Memory]],
        devices: Mapping[str, Posterior],
        clusters: Sequence[Posterior],
    ) -> Steps[list[Match]]:
        """Test pairs of a device and a memory, in both directions."""
        tests = []
        for device, past in pairs:
            new, old = devices[device].key, clusters[past.cluster].key
            there = (new,) if past.device == device else ()
            tests.append(
                (
                    replace(self._new(device, new, old), held=(new,)),
                    replace(self._past(past, old, new), held=there),
                )
            )
        models = (*devices.values(), *clusters)
        requests = [score for both in tests for score in both]
        replies = (yield Exchange.of(requests, models)) if requests else {}
        matches = []
        for (device, past), both in zip(pairs, tests, strict=True):
            answers = [replies.get(score) for score in both]
            matches.append(self._match(device, past.cluster, *answers))
        return matches

    def _match(
        self, device: str, cluster: int, first: SupportTest | None, second: SupportTest | None
    ) -> Match:
        able = first is not None and 0.5**first.num_pairs <= self.testing.alpha
        if first is None or second is None:
            return Match(device, cluster, 1.0, able)
        return Match(device, cluster, max(first.p_value, second.p_value), able)

    def _new(self, device: str, own: str, offered: str) -> Score:
        return self.testing.score(device, own, offered, VALIDATION)

    def _past(self, past: Memory, own: str, offered: str) -> Score:
        view = f"{VALIDATION_MEMORY}:{past.step}"
        return self.testing.score(past.device, own, offered, view, self.memory_samples)

    def best(self, matches: Iterable[Match]) -> dict[str, int]:
        """Cluster of each device whose best match is significant.

        The thesis takes the first match; here it is the one of lowest p-value, the first on ties.
        """
        chosen: dict[str, Match] = {}
        for match in matches:
            if match.p_value > self.testing.alpha:
                continue
            if match.device not in chosen or match.p_value < chosen[match.device].p_value:
                chosen[match.device] = match
        return {device: match.cluster for device, match in chosen.items()}
