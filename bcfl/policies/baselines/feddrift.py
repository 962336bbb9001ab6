"""FedDrift: clusters are opened for drifting clients and merged where models are similar.

Jothimurugesan, Hsieh, Wang, Joshi and Gibbons, "Federated Learning under Distributed Concept Drift"
(2023).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bcfl.data.names import TRAIN
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.baselines.linkage import (
    Losses,
    Piece,
    Pieces,
    Regrouping,
    cluster_distances,
    complete_linkage,
)
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.policy import Candidate, Ranking, candidate
from bcfl.policies.trainings import trainings
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Score, Steps, Train, loss_matrix
from bcfl.runtime import check_whole


@dataclass(frozen=True, kw_only=True)
class FedDrift:
    """Associate by lowest loss at the start of each time step; in between, clusters only train.

    At the start of a time step a client whose lowest loss has risen by more than `delta` since the
    previous step opens a cluster, which continues from its best model and cannot merge at once. All
    others join the cluster of lowest loss. Clusters are then merged into their sample-weighted mean
    by complete linkage, with distances that are the excess loss of a model on the other cluster's
    samples. A cluster's samples are those that clients brought to it in any time step: it lives on
    without clients, for concepts that come back, and ends only without samples. Within a time step,
    and hence on static data, the same is repeated every few rounds, so that clusters can merge once
    trained.

    Attributes:
        objective: local objective.
        delta: threshold on losses, nats per sample; the authors' code compares accuracies.
        every: rounds, or share of the run below 1, between repetitions within a time step.
        start: `each` opens a cluster for each client of the first round, `one` a single one.
        drifted: whether drifting clients open clusters `alone` or one `together`, without merging
            (FedDrift-Eager).
        max_clusters: largest number of clusters; None is no bound.
        trains_on: whether a client trains each cluster on `all` samples that it ever brought to it,
            as in the paper, or its present cluster on its `current` samples; merging then sees
            these alone.
    """

    objective: Objective
    delta: float = 0.25
    every: float = 0.1
    start: Literal["each", "one"] = "each"
    drifted: Literal["alone", "together"] = "alone"
    max_clusters: int | None = None
    trains_on: Literal["all", "current"] = "all"

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_round("every", self.every)
        if self.every == 0:
            raise ValueError("every must be above 0, got 0")
        if self.start not in ("each", "one"):
            raise ValueError(f"start must be 'each' or 'one', got {self.start!r}")
        if self.drifted not in ("alone", "together"):
            raise ValueError(f"drifted must be 'alone' or 'together', got {self.drifted!r}")
        if self.trains_on not in ("all", "current"):
            raise ValueError(f"trains_on must be 'all' or 'current', got {self.trains_on!r}")
        if self.max_clusters is not None:
            check_whole("max_clusters", self.max_clusters, other=" or None")

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Score when due, regroup, and train. See `bcfl.policies.Policy.associate`."""
        step, state = context.step, hypothesis.state
        begins = state.get("step", 0) < step
        due = begins or context.round % round_number(self.every, context) == 0
        association = hypothesis.association
        past = _past(hypothesis, step)
        scored = [c for c in context.participants if due or association.label(c) == UNSEEN]
        pieces = [(client, step) for client in scored]
        if due and self.trains_on == "all":
            pieces += [piece for piece in past if piece[0] in set(scored)]
        losses = yield from _losses(hypothesis, sorted(pieces), step)
        regrouping = self._regrouping(hypothesis, past, losses, step, due)
        if not regrouping.labels:
            return Ranking.only(candidate(hypothesis, {}, self.objective))
        opened, origins = regrouping.applied(hypothesis)
        labels = regrouping.labels
        present = {c: labels[c] for c in context.participants if c in labels}
        chosen = candidate(opened, present, self.objective, num_samples=context.num_samples)
        if self.trains_on == "all":
            chosen = _on_all_samples(chosen, opened, regrouping.past, context)
        before = {posterior.key for posterior in hypothesis.clusters}
        merged = tuple(p for p in opened.clusters if p.key not in before)
        lowest = {**state.get("losses", {}), **losses.at(step).lowest}
        state = {**state, "losses": lowest, "step": step}
        if regrouping.past:
            rows = sorted(regrouping.past.items())
            state["past"] = [[client, earlier, k] for (client, earlier), k in rows]
        return Ranking.only(
            replace(chosen, origins=origins, models=(*chosen.models, *merged), state=state)
        )

    def _regrouping(
        self, hypothesis: Hypothesis, past: Pieces, losses: Losses, step: int, due: bool
    ) -> Regrouping:
        """The clusters of this round."""
        count, now = len(hypothesis.clusters), losses.at(step)
        previous = hypothesis.association.by_client
        labels = {**previous, **now.best}
        if not previous:
            return self._opened(now)
        if not due:
            groups = np.arange(count)
            return Regrouping.of(labels, past, groups.tolist(), groups, np.ones(count))
        before = hypothesis.state.get("losses", {})
        drifted, origins = self._drifted(before, now, count)
        labels |= drifted
        held = {**past, **{(client, step): label for client, label in labels.items()}}
        samples = losses.samples(held, len(origins))
        groups = np.arange(len(origins))
        if self.drifted == "alone":
            distances = cluster_distances(losses.by_cluster(held))
            merged = complete_linkage(distances, self.delta)
            groups = np.concatenate([merged, count + np.arange(len(origins) - count)])
        return Regrouping.of(labels, past, origins, groups, samples)

    def _opened(self, losses: Losses) -> Regrouping:
        """The clusters of the first round."""
        alone = self.start == "each"
        bound = self.max_clusters or len(losses.clients)
        labels = {c: i % bound if alone else 0 for i, c in enumerate(losses.clients)}
        count = max(labels.values(), default=-1) + 1
        return Regrouping([[0]] * count, [[1.0]] * count, labels, new=range(1, count))

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


def _past(hypothesis: Hypothesis, step: int) -> dict[Piece, int]:
    """The cluster of each client's samples of earlier time steps."""
    past = {(client, earlier): label for client, earlier, label in hypothesis.state.get("past", ())}
    last = hypothesis.state.get("step", 0)
    if last < step:
        past |= {(client, last): k for client, k in hypothesis.association.by_client.items()}
    return past


def _on_all_samples(
    chosen: Candidate, opened: Hypothesis, past: Pieces, context: RoundContext
) -> Candidate:
    """The candidate whose clients train every cluster on the samples that they brought to it.

    Args:
        chosen: each client trains its present cluster on its samples of this time step.
        opened: the hypothesis with the clusters of this round.
        past: cluster of each client's samples of earlier time steps.
        context: read-only context of the round.
    """
    views: dict[tuple[str, int], list[str]] = {}
    for (client, step), label in sorted(past.items()):
        views.setdefault((client, label), []).append(f"memory:{step}")
    work: list[Train] = []
    rows: list[int] = []
    for training, row in zip(chosen.trainings, chosen.contribution_weights, strict=True):
        label = int(row.argmax())
        more = views.pop((training.client, label), [])
        work.append(replace(training, views=(*training.views, *more)))
        rows.append(label)
    models = list(chosen.models)
    for (client, label), names in views.items():
        if client in context.num_samples:
            start = {client: opened.clusters[label].key}
            extra = trainings(opened, start, chosen.trainings[0].objective, context.num_samples)
            work += [replace(request, views=tuple(names)) for request in extra.requests]
            models += extra.models
            rows.append(label)
    weights = np.eye(len(opened.clusters))[rows]
    return replace(
        chosen, trainings=tuple(work), contribution_weights=weights, models=tuple(models)
    )


def _losses(hypothesis: Hypothesis, pieces: Sequence[Piece], step: int) -> Steps[Losses]:
    """Losses of all cluster models on the training samples of the given pieces."""
    keys = [posterior.key for posterior in hypothesis.clusters]
    distinct = tuple(dict.fromkeys(keys))
    scores = {
        piece: Score(
            client=piece[0],
            models=distinct,
            view=TRAIN if piece[1] == step else f"memory:{piece[1]}",
        )
        for piece in pieces
    }
    replies = (yield Exchange.of(scores.values(), hypothesis.clusters)) if scores else {}
    answers = {piece: replies[s] for piece, s in scores.items() if s in replies}
    answering = sorted(answers)
    if not answering:
        return Losses((), np.zeros((0, len(keys))), np.zeros(0))
    totals, counts = loss_matrix(answering, dict.fromkeys(answering, keys), answers)
    return Losses(answering, totals / counts[:, None], counts)
