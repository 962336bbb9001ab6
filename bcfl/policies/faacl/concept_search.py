"""Whether new data are of a concept that was there before: the searches of C-FAACL.

"Asymmetric clustering in federated continual learning", algorithms 8 and 9. As printed the tests
have neither margin nor direction, and asking whether a device's new model suits the data that it
was just trained on says nothing. Here a device and a cluster match if each supports the other: the
cluster's model on the device's new data, and the device's model on data of the cluster's past.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bcfl.data.clients import VALIDATION
from bcfl.data.streams import VALIDATION_MEMORY
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.faacl.support import SupportTesting
from bcfl.protocol.requests import Exchange, Score, Steps
from bcfl.protocol.statistics.support import SupportTest
from bcfl.runtime.seeds import generator


@dataclass(frozen=True, order=True)
class Memory:
    """A device had a cluster in a time step.

    Attributes:
        step: number of the time step, from 0.
        device: name of the device.
        cluster: number of the cluster, as clusters are numbered now.
    """

    step: int
    device: str
    cluster: int


@dataclass(frozen=True)
class ConceptMemory:
    """What devices and clusters remember of earlier time steps, and when each device searched last.

    Attributes:
        memories: sorted by time step, then device; one for each device and step.
        searched: time step in which each device last got its cluster.
    """

    memories: tuple[Memory, ...] = ()
    searched: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> ConceptMemory:
        """What a hypothesis remembers."""
        memories = (Memory(*one) for one in state.get("memories", []))
        return cls(tuple(memories), tuple(sorted(state.get("searched", {}).items())))

    @property
    def state(self) -> dict[str, Any]:
        """What a hypothesis is to remember."""
        memories = [[one.step, one.device, one.cluster] for one in self.memories]
        return {"memories": memories, "searched": dict(self.searched)}

    def of_device(self, device: str) -> list[Memory]:
        """What a device remembers, newest first."""
        return [one for one in reversed(self.memories) if one.device == device]

    def of_cluster(self, cluster: int, devices: Iterable[str]) -> list[Memory]:
        """The newest memories of a cluster that some devices have, sorted by device.

        Args:
            cluster: its number.
            devices: who can be asked.
        """
        asked = set(devices)
        mine = [one for one in self.memories if one.cluster == cluster and one.device in asked]
        newest = max((one.step for one in mine), default=-1)
        return [one for one in mine if one.step == newest]

    def due(self, devices: Iterable[str], step: int) -> list[str]:
        """Those of some devices that have not searched in a time step yet."""
        known = dict(self.searched)
        return [device for device in devices if known.get(device, -1) < step]

    def after(self, devices: Iterable[str], step: int) -> ConceptMemory:
        """Devices have got their clusters of a time step."""
        known = {**dict(self.searched), **dict.fromkeys(devices, step)}
        return ConceptMemory(self.memories, tuple(sorted(known.items())))

    def with_past(self, labels: Mapping[str, int], step: int) -> ConceptMemory:
        """With the clusters that devices had in time steps before this one.

        Args:
            labels: cluster of each device, -1 without one.
            step: this time step.
        """
        known = {(one.device, one.step) for one in self.memories}
        new = [
            Memory(when, device, labels[device])
            for device, when in self.searched
            if when < step and (device, when) not in known and labels.get(device, UNSEEN) != UNSEEN
        ]
        return ConceptMemory(tuple(sorted((*self.memories, *new))), self.searched)

    def moved(self, places: Sequence[int]) -> ConceptMemory:
        """The same after clusters got other numbers, as when they merge.

        Args:
            places: new number of each cluster.
        """
        memories = (Memory(one.step, one.device, places[one.cluster]) for one in self.memories)
        return ConceptMemory(tuple(memories), self.searched)


@dataclass(frozen=True)
class Match:
    """How well a device's new data go with what is remembered of a cluster.

    Attributes:
        device: name of the device.
        cluster: number of the cluster.
        p_value: the larger one of the two tests, 1 where one was not answered.
        able: whether there are enough new samples for the first test to be passed.
    """

    device: str
    cluster: int
    p_value: float
    able: bool


@dataclass(frozen=True)
class ConceptSearch:
    """Searches for the concept of new data, first in a device's own memory, then in all clusters'.

    Attributes:
        testing: when a model supports a device.
        memory_samples: at most so many validation samples of a time step are remembered.
    """

    testing: SupportTesting
    memory_samples: int = 50

    def __post_init__(self) -> None:
        if self.memory_samples < 1:
            raise ValueError(f"memory_samples must be at least 1, got {self.memory_samples}")

    def local(
        self,
        devices: Mapping[str, Posterior],
        clusters: Sequence[Posterior],
        memory: ConceptMemory,
    ) -> Steps[list[Match]]:
        """Compare devices with all clusters that they remember (algorithm 8).

        Args:
            devices: new model of each device.
            clusters: model of each cluster.
            memory: who had which cluster when.
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
        """Compare devices with all clusters on data of another device that had it (algorithm 9).

        That device is drawn among those of the newest time step that take part; it is sent the new
        model, and its samples stay with it.

        Args:
            devices: new model of each device.
            clusters: model of each cluster.
            memory: who had which cluster when.
            context: the round.
        """
        pairs = []
        for device in devices:
            for cluster in range(len(clusters)):
                others = [other for other in context.participants if other != device]
                holders = memory.of_cluster(cluster, others)
                if holders:
                    random = generator(context.seed, context.round, device, cluster, "witness")
                    pairs.append((device, holders[int(random.integers(len(holders)))]))
        return (yield from self._matches(pairs, devices, clusters))

    def _matches(
        self,
        pairs: Sequence[tuple[str, Memory]],
        devices: Mapping[str, Posterior],
        clusters: Sequence[Posterior],
    ) -> Steps[list[Match]]:
        """Test pairs of a device and a memory, both ways."""
        asked = []
        for device, past in pairs:
            new, old = devices[device].key, clusters[past.cluster].key
            asked.append((self._new(device, new, old), self._past(past, old, new)))
        models = (*devices.values(), *clusters)
        requests = [score for both in asked for score in both]
        replies = (yield Exchange.of(requests, models)) if requests else {}
        found = []
        for (device, past), both in zip(pairs, asked, strict=True):
            answers = [replies.get(score) for score in both]
            found.append(self._match(device, past.cluster, *answers))
        return found

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
        """The cluster of each device whose best match is significant.

        The thesis takes the first match; here it is the one of lowest p-value, the first of equals.
        """
        chosen: dict[str, Match] = {}
        for match in matches:
            if match.p_value > self.testing.alpha:
                continue
            if match.device not in chosen or match.p_value < chosen[match.device].p_value:
                chosen[match.device] = match
        return {device: match.cluster for device, match in chosen.items()}
