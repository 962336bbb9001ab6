"""Which cluster is which, from round to round and from hypothesis to hypothesis.

A cluster is known by its model, which goes on from round to round, and not by its clients, which
may move. All views of a run over rounds number clusters in this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

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
    of the same index, unless the method says otherwise (`bcfl.hypotheses.Snapshot.continues`). A
    new cluster has a new number, and that of a cluster that is gone is not used again; methods that
    often open clusters have numbers well above their number of clusters. Hypotheses that descend
    from one another, or from a common ancestor, thus share their numbers. Those that descend from
    different initial hypotheses are matched by the clients that their clusters share in one round:
    that in which the lead passes from one to the other, and each round for those that never lead.

    Apart from such matches, one number is one cluster among the leading hypotheses, their
    ancestors, and what other hypotheses share with these. Further clusters of hypotheses that never
    lead have numbers above those, which may be those of other clusters in another round.

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


def _main_parents(snapshot: Snapshot) -> list[int]:
    """For each hypothesis, then each proposal, the parent from which most of its weight comes."""
    return [
        max(origins, key=lambda origin: origin[1], default=(0, 1.0))[0]
        for origins in snapshot.origins
    ]


@dataclass(frozen=True, eq=False)
class _Identities:
    """Which clusters a hypothesis has.

    Attributes:
        start: index of the initial hypothesis from which it descends.
        clusters: (clusters,) arbitrary numbers that its clusters have in all rounds.
    """

    start: int
    clusters: Numbers


_Known = dict[int, dict[int, int]]
"""Numbers to show of clusters by their identity, for each initial hypothesis."""


def _identities(history: Sequence[Snapshot]) -> list[list[_Identities]]:
    """By round and hypothesis."""
    fresh, found = count(), list[list[_Identities]]()
    before: Mapping[int, _Identities] = {}
    associations: list[Association] = []
    for snapshot in history:
        competitors = _competitors(snapshot)
        parents = _main_parents(snapshot)
        if not found:
            most = max(association.num_clusters for association in competitors)
            before = {p: _Identities(p, _new(fresh, most)) for p in dict.fromkeys(parents)}
        rows = []
        for index, (association, parent) in enumerate(zip(competitors, parents, strict=True)):
            sources = snapshot.continues[index] if snapshot.continues else ()
            earlier = before[parent]
            if not sources and associations and association.num_clusters < len(earlier.clusters):
                shared = association.serving.T @ associations[parent].serving
                sources = tuple(best_matching(shared).tolist())
            kept = _inherited(earlier.clusters, sources, association.num_clusters, fresh)
            rows.append(_Identities(earlier.start, kept))
        found.append(rows)
        before, associations = dict(enumerate(rows)), competitors
    return found


def _new(fresh: Iterator[int], size: int) -> Numbers:
    return np.array([next(fresh) for _ in range(size)], dtype=np.int64)


def _inherited(parent: Numbers, sources: Sequence[int], size: int, fresh: Iterator[int]) -> Numbers:
    """Identities of a child's clusters.

    Args:
        parent: identities of the parent's clusters.
        sources: the parent's cluster that each continues, -1 for a new one; empty where all keep
            their indices. Of several that continue one, that of its index does, or else the first.
        size: number of the child's clusters.
        fresh: identities that no cluster has had.
    """
    if not sources and size == len(parent):
        return parent
    sources = sources or range(size)
    free, places = set(range(len(parent))), dict[int, int]()
    for cluster in sorted(range(size), key=lambda k: sources[k] != k):
        if sources[cluster] in free:
            places[cluster] = sources[cluster]
            free.remove(sources[cluster])
    row = [int(parent[places[k]]) if k in places else next(fresh) for k in range(size)]
    return np.array(row, dtype=np.int64)


def _known(history: Sequence[Snapshot], identities: Sequence[Sequence[_Identities]]) -> _Known:
    """Numbers of all clusters of leading hypotheses and their ancestors."""
    known: _Known = {}
    ancestor = 0
    for number in range(len(history) - 1, -1, -1):
        competitors, rows = _competitors(history[number]), identities[number]
        reference = _numbered(rows[ancestor], known)
        if ancestor != 0:
            _numbered(rows[0], known, _matched(0, ancestor, competitors, rows, reference))
        ancestor = _main_parents(history[number])[0]
    return known


def _of_round(
    competitors: Sequence[Association], rows: Sequence[_Identities], known: _Known
) -> list[Numbers]:
    known = {start: dict(numbers) for start, numbers in known.items()}
    leading = _numbered(rows[0], known)
    numbers = [leading]
    for index, row in enumerate(rows[1:], 1):
        own = known.get(row.start, {})
        new = any(identity not in own for identity in row.clusters.tolist())
        matched = _matched(index, 0, competitors, rows, leading) if new else ()
        numbers.append(_numbered(row, known, matched))
    return numbers


def _matched(
    index: int,
    other: int,
    competitors: Sequence[Association],
    rows: Sequence[_Identities],
    numbers: Numbers,
) -> Sequence[int]:
    """Numbers of the clusters of another hypothesis that those of one match, -1 for none.

    Empty where both descend from one initial hypothesis.

    Args:
        index: of the hypothesis.
        other: index of the other.
        competitors: associations of all.
        rows: identities of the clusters of all.
        numbers: of the clusters of the other.
    """
    if rows[index].start == rows[other].start:
        return ()
    matched = best_matching(competitors[index].serving.T @ competitors[other].serving)
    return [int(numbers[k]) if k < len(numbers) else -1 for k in matched]


def _numbered(row: _Identities, known: _Known, matched: Sequence[int] = ()) -> Numbers:
    """Numbers of the clusters of a hypothesis; new ones become known.

    Args:
        row: its clusters.
        known: numbers so far.
        matched: numbers that clusters without one should have, -1 for a new one; empty for all new.
    """
    own = known.setdefault(row.start, {})
    identities = row.clusters.tolist()
    new = [cluster for cluster, identity in enumerate(identities) if identity not in own]
    if new:
        taken = set(own.values())
        fresh = count(
            1 + max(number for found in known.values() for number in (-1, *found.values()))
        )
        for cluster in new:
            wanted = matched[cluster] if matched else -1
            own[identities[cluster]] = next(fresh) if wanted < 0 or wanted in taken else wanted
            taken.add(own[identities[cluster]])
    return np.array([own[identity] for identity in identities], dtype=np.int64)
