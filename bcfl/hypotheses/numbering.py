"""Which cluster is which, from round to round and from hypothesis to hypothesis.

A cluster is known by its model, which goes on from round to round, and not by its clients, which
may move. All views of a run over rounds number clusters in this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.history import Snapshot
from bcfl.hypotheses.matching import best_matching

Numbers = NDArray[np.int64]
"""(clusters,) number of each cluster of a hypothesis."""


def cluster_numbers(history: Sequence[Snapshot]) -> list[list[Numbers]]:
    """Numbers by which clusters are the same in all rounds, those of the last leading hypothesis.

    A cluster has the number of the cluster of the parent hypothesis whose model it continues: that
    of the same index, unless the method says otherwise (`Snapshot.continues`). A new cluster has
    that of the cluster whose index it takes over, or a new one. Hypotheses that descend from one
    another, or from a common ancestor, thus share their numbers. Hypotheses without a common
    ancestor are matched by the clients that their clusters share in one round, that in which the
    lead passes from one to the other.

    Args:
        history: snapshots of all rounds.

    Returns:
        For each round, the numbers of each hypothesis and then of each proposal; those of one
        hypothesis differ from each other.
    """
    if not history:
        return []
    identities = _identities(history)
    known = _known(history, identities)
    return [
        _of_round(_competitors(snapshot), rows, known)
        for snapshot, rows in zip(history, identities, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class LeadingClusters:
    """Clusters of the leading hypothesis after each round, in the numbers of `cluster_numbers`.

    Attributes:
        labels: (rounds, clients) int64 cluster of each client, -1 for none.
        num_clusters: one more than the largest number of a cluster, empty ones included.
        numbers: for each round, the number of each cluster of the leading hypothesis.
    """

    labels: NDArray[np.int64]
    num_clusters: int
    numbers: Sequence[Numbers]

    @classmethod
    def of(cls, history: Sequence[Snapshot]) -> LeadingClusters:
        """Of the snapshots of all rounds.

        Raises:
            ValueError: the history is empty.
        """
        if not history:
            raise ValueError("history must hold at least one round, got none")
        numbers = [rows[0] for rows in cluster_numbers(history)]
        leading = [snapshot.associations[0].labels for snapshot in history]
        labels = np.stack(list(map(renumbered, leading, numbers)))
        return cls(labels, 1 + max(int(row.max()) for row in numbers), numbers)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(rounds, clusters) number of clients of each cluster."""
        rows = [np.bincount(row[row >= 0], minlength=self.num_clusters) for row in self.labels]
        return np.stack(rows).astype(np.int64)


def renumbered(labels: NDArray[np.int64], numbers: Numbers) -> NDArray[np.int64]:
    """Labels in other numbers; negative ones stay as they are.

    Args:
        labels: int64 clusters, negative for none.
        numbers: of the clusters.
    """
    return np.where(labels < 0, labels, numbers[labels])


def _competitors(snapshot: Snapshot) -> list[Association]:
    return [*snapshot.associations, *(proposal.association for proposal in snapshot.proposals)]


def main_parent(snapshot: Snapshot, index: int) -> int:
    """The parent from which most of the weight of a hypothesis comes, the first of several.

    Args:
        snapshot: of its round.
        index: of the hypothesis, or of a proposal after the hypotheses.
    """
    return max(snapshot.origins[index], key=lambda origin: origin[1], default=(0, 1.0))[0]


def _identities(history: Sequence[Snapshot]) -> list[list[Numbers]]:
    """By round and hypothesis, arbitrary numbers that clusters have in all rounds."""
    fresh, found = count(), list[list[Numbers]]()
    before: Mapping[int, Numbers] = {}
    associations: list[Association] = []
    for snapshot in history:
        competitors = _competitors(snapshot)
        parents = [main_parent(snapshot, index) for index in range(len(competitors))]
        if not found:
            most = max(association.num_clusters for association in competitors)
            before = {parent: _new(fresh, most) for parent in dict.fromkeys(parents)}
        rows = []
        for index, (association, parent) in enumerate(zip(competitors, parents, strict=True)):
            sources = snapshot.continues[index] if snapshot.continues else ()
            earlier = before[parent]
            if not sources and associations and association.num_clusters < len(earlier):
                shared = association.serving.T @ associations[parent].serving
                sources = tuple(best_matching(shared).tolist())
            rows.append(_inherited(earlier, sources, association.num_clusters, fresh))
        found.append(rows)
        before, associations = dict(enumerate(rows)), competitors
    return found


def _new(fresh: Iterator[int], size: int) -> Numbers:
    return np.array([next(fresh) for _ in range(size)], dtype=np.int64)


def _inherited(parent: Numbers, sources: Sequence[int], size: int, fresh: Iterator[int]) -> Numbers:
    """Numbers of a child's clusters.

    Args:
        parent: numbers of the parent's clusters.
        sources: the parent's cluster that each continues, -1 for a new one; empty where all keep
            their indices.
        size: number of the child's clusters.
        fresh: numbers that no cluster has had.
    """
    sources = sources or range(size)
    places: dict[int, int] = {}
    for cluster in sorted(range(size), key=lambda k: sources[k] != k):
        source = sources[cluster]
        if 0 <= source < len(parent) and source not in places.values():
            places[cluster] = source
    free = set(range(len(parent))) - set(places.values())
    places |= {
        cluster: cluster for cluster in range(size) if cluster not in places and cluster in free
    }
    row = [int(parent[places[k]]) if k in places else next(fresh) for k in range(size)]
    return np.array(row, dtype=np.int64)


def _known(history: Sequence[Snapshot], identities: Sequence[Sequence[Numbers]]) -> dict[int, int]:
    """Numbers to show by identity, for all clusters of leading hypotheses and their ancestors."""
    known: dict[int, int] = {}
    ancestor = 0
    for number in range(len(history) - 1, -1, -1):
        competitors, rows = _competitors(history[number]), identities[number]
        reference = _shown(rows[ancestor], range(len(rows[ancestor])), known)
        if ancestor != 0:
            _shown(rows[0], _preferred(0, ancestor, competitors, rows, reference), known)
        ancestor = main_parent(history[number], 0)
    return known


def _of_round(
    competitors: Sequence[Association], rows: Sequence[Numbers], known: Mapping[int, int]
) -> list[Numbers]:
    leading = _shown(rows[0], range(len(rows[0])), dict(known))
    return [
        leading
        if index == 0
        else _shown(row, _preferred(index, 0, competitors, rows, leading), dict(known))
        for index, row in enumerate(rows)
    ]


def _preferred(
    index: int,
    other: int,
    competitors: Sequence[Association],
    rows: Sequence[Numbers],
    numbers: Numbers,
) -> Sequence[int]:
    """Numbers for the clusters of a hypothesis that have none yet.

    Args:
        index: of the hypothesis.
        other: index of one whose clusters have numbers.
        competitors: associations of all.
        rows: identities of the clusters of all.
        numbers: of the clusters of the other.
    """
    if np.isin(rows[index], rows[other]).any():
        return range(len(rows[index]))
    matched = best_matching(competitors[index].serving.T @ competitors[other].serving)
    return [int(numbers[k]) if k < len(numbers) else int(k) for k in matched]


def _shown(
    identities: Numbers, preferred: Sequence[int], known: MutableMapping[int, int]
) -> Numbers:
    """Numbers to show of the clusters of a hypothesis, each once; new ones become known."""
    shown: dict[int, int] = {}
    for cluster, identity in enumerate(identities.tolist()):
        if identity in known and known[identity] not in shown.values():
            shown[cluster] = known[identity]
    for cluster, identity in enumerate(identities.tolist()):
        if cluster not in shown:
            taken = set(shown.values())
            wanted = preferred[cluster]
            shown[cluster] = next(n for n in chain([wanted], count()) if n not in taken)
            known.setdefault(identity, shown[cluster])
    return np.array([shown[k] for k in range(len(identities))], dtype=np.int64)
