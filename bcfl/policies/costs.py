"""The cost matrix behind a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from reprlib import repr as shortened

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.hypotheses.association import Association
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.runtime import nearest
from bcfl.runtime.arrays import real_array


@dataclass(frozen=True, eq=False, kw_only=True)
class Costs:
    """The cost matrix behind a ranking.

    Attributes:
        clients: names of the rows.
        values: (clients, clusters) negative log weight of each client in each cluster, nats, less
            the client's offset.
        cluster_size: bounds on the number of clients per cluster.
        judged: (clients, clusters) negative log weights by which hypotheses compete, nats, less
            their own offsets, if they differ from `values`, for example on held-out samples.
        offsets: (clients, 2) negative log weight that `values` leave out of each client's row,
            nats, as two numbers whose sum it is, so that large ones keep their digits; None is 0.
        judged_offsets: (clients, 2) the same of `judged`.
        belief_temperature: divides the values where they become membership probabilities, since
            samples are no independent evidence for a misspecified model; (clients, 1) where it
            differs between clients, None where the values are no evidence of membership.
        log_prior: (clients, clusters) the log prior that the values hold, up to a number for each
            client, nats, which is no evidence and not divided; None is uniform.

    Raises:
        TypeError: an entry is of another type.
        ValueError: a client is repeated, a matrix does not have one row for each client, or an
            entry cannot be a negative log weight: NaN, -inf, or +inf in every cluster of a client.
    """

    clients: tuple[str, ...]
    values: NDArray[np.float64]
    cluster_size: ClusterSize = FREE
    judged: NDArray[np.float64] | None = None
    offsets: NDArray[np.float64] | None = None
    judged_offsets: NDArray[np.float64] | None = None
    belief_temperature: float | NDArray[np.float64] | None = None
    log_prior: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", _distinct_names(self.clients))
        object.__setattr__(self, "values", _matrix("values", self.values, self.clients))
        object.__setattr__(self, "cluster_size", ClusterSize.of(self.cluster_size))
        _check_weights("values", self.values, self.clients)
        shape = self.values.shape
        for name in ("judged", "log_prior", "offsets", "judged_offsets"):
            if getattr(self, name) is not None:
                matrix = _matrix(name, getattr(self, name), self.clients)
                wanted = (len(self.clients), 2) if name.endswith("offsets") else shape
                if matrix.shape != wanted or np.isnan(matrix).any():
                    raise ValueError(
                        f"{name} of Costs must have shape {wanted} and no NaN, got shape "
                        f"{matrix.shape}" + _places(np.isnan(matrix), self.clients, ", NaN")
                    )
                object.__setattr__(self, name, matrix)
        _check_temperature(self.belief_temperature, len(self.clients))

    def check(self, association: Association, num_clusters: int | None = None) -> None:
        """Check that the costs are of clients of a federation, in the clusters of a hypothesis.

        Args:
            association: of all clients.
            num_clusters: clusters of the hypothesis; None leaves the columns unchecked.

        Raises:
            ValueError: a client is unknown, or there is not one column for each cluster.
        """
        unknown = [client for client in self.clients if client not in association.position]
        if unknown:
            raise ValueError(
                f"clients of Costs must be clients of the federation, got "
                f"{', '.join(map(repr, unknown[:5]))}.{nearest(unknown[0], association.clients)}"
            )
        if num_clusters is not None and self.clients and self.values.shape[1] != num_clusters:
            raise ValueError(
                f"values of Costs must have one column for each of the {num_clusters} clusters, "
                f"got shape {self.values.shape}"
            )

    @property
    def competing(self) -> NDArray[np.float64]:
        """(clients, clusters) negative log weights by which hypotheses compete, nats."""
        return self.values if self.judged is None else self.judged

    @property
    def competing_offsets(self) -> NDArray[np.float64]:
        """(clients, 2) what `competing` leaves out of each row, nats, as sums of two numbers."""
        offsets = self.offsets if self.judged is None else self.judged_offsets
        return np.zeros((len(self.clients), 2)) if offsets is None else offsets

    @property
    def total_offset(self) -> Fraction:
        """Exact sum of what `values` leave out, nats."""
        return Fraction(0) if self.offsets is None else assignment.exact_sum(self.offsets)


def _distinct_names(clients: object) -> tuple[str, ...]:
    if isinstance(clients, str) or not isinstance(clients, Iterable):
        raise TypeError(f"clients of Costs must be a tuple of names, got {shortened(clients)}")
    names = tuple(clients)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"clients of Costs must be names as text, got {shortened(name)}")
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})[:5]
        raise ValueError(f"clients of Costs must be distinct, got more than one of {repeated}")
    return names


def _matrix(name: str, values: object, clients: Sequence[str]) -> NDArray[np.float64]:
    """Values as float64, with one row for each client."""
    array = real_array(values, f"{name} of Costs", "")  # type: ignore[arg-type]
    if not clients and not array.size:
        return np.zeros((0, array.shape[1] if array.ndim == 2 else 0))
    if array.ndim != 2 or len(array) != len(clients) or not array.size:
        raise ValueError(
            f"{name} of Costs must have shape (clients, clusters), here {len(clients)} rows, got "
            f"shape {array.shape}"
        )
    return array.astype(np.float64, copy=False)


def _check_weights(name: str, values: NDArray[np.float64], clients: Sequence[str]) -> None:
    lowest = values.min(initial=np.inf)
    if np.isnan(lowest) or lowest == -np.inf:
        wrong = np.isnan(values) | np.isneginf(values)
        raise ValueError(
            f"{name} of Costs must be numbers, or +inf for a cluster that a client cannot join, "
            f"got NaN or -inf{_places(wrong, clients)}"
        )
    closed = np.asarray(np.isposinf(values).all(axis=1, keepdims=True))
    if len(clients) and closed.any():
        raise ValueError(
            f"{name} of Costs must leave a cluster to each client, got only +inf"
            + _places(closed, clients)
        )


def _places(wrong: NDArray[np.bool_], clients: Sequence[str], what: str = "") -> str:
    """Names of the first clients with a wrong entry, for messages; empty where there is none."""
    rows = np.flatnonzero(wrong.any(axis=1))[:5] if len(wrong) == len(clients) else ()
    return f"{what} for {', '.join(repr(clients[row]) for row in rows)}" if len(rows) else ""


def _check_temperature(temperature: object, num_clients: int) -> None:
    if temperature is None:
        return
    array = real_array(temperature, "belief_temperature of Costs", "")  # type: ignore[arg-type]
    if array.shape not in ((), (num_clients, 1)) or not np.greater(array, 0).all():
        raise ValueError(
            f"belief_temperature of Costs must be positive, one number or of shape "
            f"{(num_clients, 1)}, or None, got {shortened(temperature)}"
        )
