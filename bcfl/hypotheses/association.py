"""Associations of clients with clusters: which model serves each client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime.suggestions import nearest

UNSEEN = -1
MOST_COMPONENTS = 256
"""Associations that a mixture of them keeps apart, heaviest first."""


@dataclass(frozen=True, eq=False)
class Association:
    """Which cluster each client belongs to, with probabilities where they are known.

    Hard associations hold labels only; soft ones also hold probabilities, and mixtures what was
    mixed, since probabilities of single clients do not say which of them share a cluster.

    Attributes:
        clients: all clients, sorted by name.
        labels: most probable cluster of each client (within any bounds on cluster sizes), int64 of
            shape (clients,); -1 for a client never seen.
        num_clusters: number of clusters.
        probabilities: float64 of shape (clients, clusters), rows sum to 1 (0 for a client never
            seen); None if each client is in exactly one cluster.
        mixed: weights, summing to 1, and associations of which this one is a mixture; empty if it
            is none.

    Raises:
        TypeError: labels that are no array of whole numbers.
        ValueError: labels of the wrong length or out of range.

    Example:
        >>> import bcfl
        >>> import numpy as np
        >>> clients, labels = ("ann", "bob", "cem"), np.array([1, 0, 1])
        >>> association = bcfl.Association(clients, labels, num_clusters=2)
        >>> association
        Association(3 clients, cluster sizes 1 2)
        >>> association.label("cem")
        1
    """

    clients: tuple[str, ...]
    labels: NDArray[np.int64]
    num_clusters: int
    probabilities: NDArray[np.float64] | None = None
    mixed: tuple[tuple[float, Association], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.labels, np.ndarray) or self.labels.dtype.kind not in "iu":
            kind = getattr(self.labels, "dtype", type(self.labels).__name__)
            raise TypeError(f"labels must be an array of whole numbers, got {kind}")
        if len(self.labels) != len(self.clients):
            raise ValueError(f"{len(self.labels)} labels do not fit {len(self.clients)} clients")
        if len(self.labels) and not (
            self.labels.min() >= UNSEEN and self.labels.max() < self.num_clusters
        ):
            raise ValueError(
                f"labels must lie between -1 and {self.num_clusters - 1}, "
                f"got {self.labels.min()} to {self.labels.max()}"
            )
        self.labels.flags.writeable = False
        if self.probabilities is not None:
            self.probabilities.flags.writeable = False

    def __repr__(self) -> str:
        sizes = " ".join(map(str, self.sizes))
        return f"Association({len(self.clients)} clients, cluster sizes {sizes})"

    @classmethod
    def unseen(cls, clients: Sequence[str], num_clusters: int) -> Association:
        """The association before any client was seen.

        Args:
            clients: names of all clients, sorted.
            num_clusters: number of clusters.
        """
        return cls(tuple(clients), np.full(len(clients), UNSEEN), num_clusters)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Row of each client."""
        return {client: row for row, client in enumerate(self.clients)}

    @property
    def partition(self) -> tuple[int, ...]:
        """Cluster of each client, numbered in the order of first occurrence; -1 if never seen."""
        numbers: dict[int, int] = {UNSEEN: UNSEEN}
        return tuple(numbers.setdefault(int(label), len(numbers) - 1) for label in self.labels)

    @property
    def serving(self) -> NDArray[np.float64]:
        """Probability that a client is served by a cluster, float64 (clients, clusters)."""
        if self.probabilities is not None:
            return self.probabilities
        serving = np.zeros((len(self.clients), self.num_clusters))
        rows = np.flatnonzero(self.labels != UNSEEN)
        serving[rows, self.labels[rows]] = 1.0
        return serving

    @property
    def components(self) -> tuple[tuple[float, Association], ...]:
        """Weights and associations, in each of which clients are in clusters independently."""
        return self.mixed or ((1.0, self),)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of clients by most probable cluster, int64 of shape (clusters,)."""
        labels = self.labels[self.labels != UNSEEN]
        return np.bincount(labels, minlength=self.num_clusters).astype(np.int64)

    @property
    def by_client(self) -> dict[str, int]:
        """Cluster of each client that was seen."""
        pairs = zip(self.clients, self.labels.tolist(), strict=True)
        return {client: label for client, label in pairs if label != UNSEEN}

    def row(self, client: str) -> int:
        """Row of a client in all matrices.

        Raises:
            ValueError: the client is unknown.
            TypeError: it is no name, but an array or the like.
        """
        named = isinstance(client, str | int)
        if not named or client not in self.position:
            some = ", ".join(map(repr, self.clients[:3])) + ", ..." * (len(self.clients) > 3)
            if not named:
                raise TypeError(f"client must be one of {some}, got a {type(client).__name__}")
            hint = nearest(client, self.clients)
            raise ValueError(
                f"client must be one of {some}, got {client!r}" + (f".{hint}" if hint else "")
            )
        return self.position[client]

    def label(self, client: str) -> int:
        """Cluster of a client, -1 if it was never seen; see `bcfl.Association.row`."""
        return int(self.labels[self.row(client)])

    def updated(self, labels: Mapping[str, int]) -> Association:
        """The association with new labels for the given clients; the others are unchanged."""
        rows = np.array([self.position[client] for client in labels], dtype=np.int64)
        moved = self.labels.copy()
        moved[rows] = list(labels.values())
        if self.probabilities is None:
            return Association(self.clients, moved, self.num_clusters)
        soft = self.probabilities.copy()
        soft[rows] = 0.0
        soft[rows, moved[rows]] = 1.0
        others = self.mixed if len(labels) < len(self.clients) else ()
        mixed = _distinct((weight, one.updated(labels)) for weight, one in others)
        return Association(self.clients, moved, self.num_clusters, soft, mixed)

    def relabelled(self, permutation: NDArray[np.int64]) -> Association:
        """The same association with cluster i at index permutation[i].

        Args:
            permutation: of the clusters, int64 of shape (clusters,).
        """
        labels, soft = self.labels, self.probabilities
        return Association(
            self.clients,
            np.where(labels == UNSEEN, UNSEEN, permutation[labels]),
            self.num_clusters,
            None if soft is None else soft[:, np.argsort(permutation)],
            tuple((weight, one.relabelled(permutation)) for weight, one in self.mixed),
        )

    def with_empty_cluster(self) -> Association:
        """The association with one more, empty cluster."""
        soft = self.probabilities
        wide = None if soft is None else np.pad(soft, ((0, 0), (0, 1)))
        mixed = tuple((weight, one.with_empty_cluster()) for weight, one in self.mixed)
        return Association(self.clients, self.labels.copy(), self.num_clusters + 1, wide, mixed)

    def without_cluster(self, cluster: int) -> Association:
        """The association without a cluster; the indices of later clusters decrease by one.

        Of a mixture, clients that a component has there go to their most probable cluster.

        Raises:
            ValueError: some client is still in the cluster.
        """
        if (self.labels == cluster).any():
            raise ValueError(f"cluster {cluster} still has clients")
        labels = self.labels - (self.labels > cluster)
        soft = self.probabilities
        if soft is not None:
            soft = np.delete(soft, cluster, axis=1)
            rows = soft.sum(axis=1, keepdims=True)
            soft = np.divide(soft, rows, out=np.zeros_like(soft), where=rows > 0)
        mixed = _distinct(
            (weight, one._moved_to(self.labels, cluster).without_cluster(cluster))
            for weight, one in self.mixed
        )
        return Association(self.clients, labels, self.num_clusters - 1, soft, mixed)

    def _moved_to(self, labels: NDArray[np.int64], cluster: int) -> Association:
        """With the given labels for the clients of a cluster."""
        rows = np.flatnonzero(self.labels == cluster)
        return self.updated({self.clients[row]: int(labels[row]) for row in rows})

    @classmethod
    def mixture(
        cls, associations: Sequence[Association], weights: NDArray[np.float64]
    ) -> Association:
        """The weighted mean of associations over the same clusters.

        Args:
            associations: at least one, whose clusters correspond.
            weights: float64 of shape (associations,), summing to 1.
        """
        first = associations[0]
        if len(associations) == 1:
            return first
        soft = sum(
            (w * a.serving for w, a in zip(weights, associations, strict=True)),
            start=np.zeros((len(first.clients), first.num_clusters)),
        )
        labels = np.where(soft.sum(axis=1) > 0, soft.argmax(axis=1), UNSEEN)
        if np.all((soft == 0) | (np.abs(soft - 1) < 1e-12)):
            return cls(first.clients, labels, first.num_clusters)
        pairs = zip(weights, associations, strict=True)
        mixed = _distinct((float(w) * v, one) for w, a in pairs for v, one in a.components)
        return cls(first.clients, labels, first.num_clusters, soft, mixed)


def _distinct(
    weighted: Iterable[tuple[float, Association]],
) -> tuple[tuple[float, Association], ...]:
    """Distinct associations with their weights; empty if there is only one."""
    known: dict[bytes, tuple[float, Association]] = {}
    for weight, one in weighted:
        soft = b"" if one.probabilities is None else one.probabilities.tobytes()
        key = one.labels.tobytes() + soft
        known[key] = (known[key][0] + weight if key in known else weight, one)
    if len(known) < 2:
        return ()
    kept = sorted(known.values(), key=lambda pair: -pair[0])[:MOST_COMPONENTS]
    total = sum(weight for weight, _ in kept)
    return tuple((weight / total, one) for weight, one in kept)


def given_seen(
    mixed: NDArray[np.float64], memberships: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Association probabilities over the hypotheses that have seen a client.

    Args:
        mixed: (clients, clusters) sums over hypotheses of weight times membership.
        memberships: (clients, clusters) of each hypothesis, zero for clients not seen.

    Returns:
        The same, with rows of clients that some hypotheses have not seen scaled to sum to 1.
    """
    seen = np.array([membership.any(axis=1) for membership in memberships])
    partly = mixed.any(axis=1) & ~seen.all(axis=0)
    scaled = mixed.copy()
    scaled[partly] /= scaled[partly].sum(axis=1, keepdims=True)
    return scaled


def given_both_seen(
    together: NDArray[np.float64],
    weights: NDArray[np.float64],
    memberships: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Co-association probabilities over the hypotheses that have seen both clients of a pair.

    Args:
        together: (clients, clients) sums over hypotheses of weight times probability, in which a
            client that a hypothesis has not seen counts as apart from all others.
        weights: (hypotheses,) probabilities.
        memberships: (clients, clusters) of each hypothesis, zero for clients not seen.
    """
    seen = np.array([membership.any(axis=1) for membership in memberships])
    if (seen == seen[0]).all():
        return together
    mass = np.einsum("h,hi,hj->ij", weights, seen, seen)
    mixed = together.copy()
    mixed[mass > 0] /= mass[mass > 0]
    return mixed
