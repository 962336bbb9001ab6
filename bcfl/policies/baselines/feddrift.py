"""FedDrift: clusters are opened for drifting clients and merged where models are similar.

Jothimurugesan, Hsieh, Wang, Joshi and Gibbons, "Federated Learning under Distributed Concept Drift"
(2023).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.baselines.linkage import Regrouping, cluster_distances, complete_linkage
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.policy import Ranking, candidate
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Score, Steps, loss_matrix


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of all cluster models on the clients' training samples.

    Attributes:
        clients: names of the clients that answered, sorted.
        values: (clients, clusters) mean loss per sample, nats.
        counts: (clients,) numbers of samples.
    """

    clients: Sequence[str]
    values: NDArray[np.float64]
    counts: NDArray[np.float64]

    @property
    def best(self) -> Mapping[str, int]:
        """The cluster of lowest loss of each client."""
        return dict(zip(self.clients, map(int, self.values.argmin(axis=1)), strict=True))

    @property
    def lowest(self) -> Mapping[str, float]:
        """The lowest loss of each client, nats per sample."""
        return dict(zip(self.clients, map(float, self.values.min(axis=1)), strict=True))

    def by_cluster(self, labels: Mapping[str, int]) -> NDArray[np.float64]:
        """Mean loss of each model on each cluster's samples, nats; NaN for empty clusters.

        Args:
            labels: cluster of each client.

        Returns:
            float64 of shape (models, clusters).
        """
        table = np.full((self.values.shape[1],) * 2, np.nan)
        rows = np.array([labels[client] for client in self.clients], dtype=np.int64)
        for cluster in range(len(table)):
            members = rows == cluster
            if members.any():
                table[:, cluster] = np.average(
                    self.values[members], axis=0, weights=self.counts[members]
                )
        return table

    def samples(self, labels: Mapping[str, int], num_clusters: int) -> NDArray[np.float64]:
        """Number of samples of the clients in each cluster, float64 of shape (clusters,).

        Args:
            labels: cluster of each client.
            num_clusters: number of clusters.
        """
        rows = np.array([labels[client] for client in self.clients], dtype=np.int64)
        samples: NDArray[np.float64] = np.zeros(num_clusters)
        np.add.at(samples, rows, self.counts)
        return samples


@dataclass(frozen=True, kw_only=True)
class FedDrift:
    """Associate by lowest loss at the start of each time step; in between, clusters only train.

    At the start of a time step a client whose lowest loss has risen by more than `delta` since the
    previous step opens a cluster, which continues from its best model and cannot merge at once. All
    others join the cluster of lowest loss. Clusters are then merged into their sample-weighted mean
    by complete linkage, with distances that are the excess loss of a model on the other cluster's
    samples. Clusters without clients are removed; the paper keeps them for recurring concepts.
    Within a time step, and hence on static data, the same is repeated every few rounds, so that
    clusters can merge once trained. Clients train on their current samples, not on all past ones.

    Attributes:
        objective: local objective.
        delta: threshold on losses, nats per sample; the authors' code compares accuracies.
        every: rounds, or share of the run below 1, between repetitions within a time step.
        start: `each` opens a cluster for each client of the first round, `one` a single one.
        drifted: whether drifting clients open clusters `alone` or one `together`, without merging
            (FedDrift-Eager).
        max_clusters: largest number of clusters; None is no bound.
    """

    objective: Objective
    delta: float = 0.25
    every: float = 0.1
    start: Literal["each", "one"] = "each"
    drifted: Literal["alone", "together"] = "alone"
    max_clusters: int | None = None

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_round("every", self.every)
        if self.every == 0:
            raise ValueError("every must be above 0, got 0")
        if self.start not in ("each", "one"):
            raise ValueError(f"start must be 'each' or 'one', got {self.start!r}")
        if self.drifted not in ("alone", "together"):
            raise ValueError(f"drifted must be 'alone' or 'together', got {self.drifted!r}")
        if self.max_clusters is not None and self.max_clusters < 1:
            raise ValueError(f"max_clusters must be at least 1 or None, got {self.max_clusters}")

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Score when due, regroup, and train. See `Policy.associate`."""
        begins = hypothesis.state.get("step", 0) < context.step
        due = begins or context.round % round_number(self.every, context) == 0
        association = hypothesis.association
        scored = [c for c in context.participants if due or association.label(c) == UNSEEN]
        losses = yield from _losses(hypothesis, scored)
        regrouping = self._regrouping(hypothesis, association.by_client, losses, due)
        if not regrouping.labels:
            return Ranking.only(candidate(hypothesis, {}, self.objective))
        opened, origins = regrouping.applied(hypothesis)
        labels = regrouping.labels
        present = {c: labels[c] for c in context.participants if c in labels}
        chosen = candidate(opened, present, self.objective, num_samples=context.num_samples)
        before = {posterior.key for posterior in hypothesis.clusters}
        merged = tuple(p for p in opened.clusters if p.key not in before)
        past = {**hypothesis.state.get("losses", {}), **losses.lowest}
        state = {**hypothesis.state, "losses": past, "step": context.step}
        return Ranking.only(
            replace(chosen, origins=origins, models=(*chosen.models, *merged), state=state)
        )

    def _regrouping(
        self, hypothesis: Hypothesis, previous: Mapping[str, int], losses: Losses, due: bool
    ) -> Regrouping:
        """The clusters of this round."""
        count = len(hypothesis.clusters)
        labels = {**previous, **losses.best}
        if not previous:
            return self._opened(losses)
        if not due:
            groups = np.arange(count)
            return Regrouping.of(labels, groups.tolist(), groups, np.ones(count))
        before = hypothesis.state.get("losses", {})
        drifted, origins = self._drifted(before, losses, count)
        labels |= drifted
        samples = losses.samples(labels, len(origins))
        groups = np.arange(len(origins))
        if self.drifted == "alone":
            distances = cluster_distances(losses.by_cluster(labels))
            merged = complete_linkage(distances, self.delta)
            groups = np.concatenate([merged, count + np.arange(len(origins) - count)])
        return Regrouping.of(labels, origins, groups, samples)

    def _opened(self, losses: Losses) -> Regrouping:
        """The clusters of the first round."""
        alone = self.start == "each"
        bound = self.max_clusters or len(losses.clients)
        labels = {c: i % bound if alone else 0 for i, c in enumerate(losses.clients)}
        count = max(labels.values(), default=-1) + 1
        return Regrouping([[0]] * count, [[1.0]] * count, labels)

    def _drifted(
        self, before: Mapping[str, float], losses: Losses, count: int
    ) -> tuple[dict[str, int], list[int]]:
        """Clusters of drifting clients, and for each cluster the one whose model it continues."""
        room = len(losses.clients) if self.max_clusters is None else self.max_clusters - count
        drifted: dict[str, int] = {}
        origins = list(range(count))
        for client in drifting(before, losses.lowest, self.delta):
            joins = self.drifted == "together" and len(origins) > count
            if not joins and len(origins) - count < room:
                origins.append(losses.best[client])
                joins = True
            if joins:
                drifted[client] = len(origins) - 1
        return drifted, origins


def check_delta(delta: float) -> None:
    """Check a threshold on losses.

    Args:
        delta: the threshold, nats per sample.

    Raises:
        ValueError: it is not positive and finite.
    """
    if not 0 < delta < float("inf"):
        raise ValueError(f"delta must be positive and finite, got {delta}")


def drifting(before: Mapping[str, float], now: Mapping[str, float], delta: float) -> list[str]:
    """Clients whose loss has risen by more than a threshold, sorted.

    Args:
        before: lowest loss of each client in the previous step, nats per sample; newcomers have
            none.
        now: lowest loss of each client now, nats per sample.
        delta: the threshold, nats per sample.
    """
    return sorted(c for c, loss in now.items() if c in before and loss > before[c] + delta)


def _losses(hypothesis: Hypothesis, clients: Sequence[str]) -> Steps[Losses]:
    """Losses of all cluster models on the training samples of the given clients."""
    keys = [posterior.key for posterior in hypothesis.clusters]
    distinct = tuple(dict.fromkeys(keys))
    scores = {client: Score(client=client, models=distinct) for client in clients}
    replies = (yield Exchange.of(scores.values(), hypothesis.clusters)) if scores else {}
    answers = {client: replies[s] for client, s in scores.items() if s in replies}
    answering = sorted(answers)
    if not answering:
        return Losses((), np.zeros((0, len(keys))), np.zeros(0))
    totals, counts = loss_matrix(answering, dict.fromkeys(answering, keys), answers)
    return Losses(answering, totals / counts[:, None], counts)
