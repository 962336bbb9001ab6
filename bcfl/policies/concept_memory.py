"""Who had which cluster in which time step: the memory of C-FAACL.

"Asymmetric clustering in federated continual learning", section 2.2: a device remembers, for each
time step, a sample of its data and its cluster; a cluster remembers its devices. Samples stay with
the devices; this is the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bcfl.association import UNSEEN


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
