"""Per-client report of a run: cluster history, association uncertainty, peers, model scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count as counted
from itertools import islice
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr

from bcfl import ClientData, Method, Run
from bcfl.analysis import TrueGroups
from bcfl.data import TEST, at_step, num_steps
from bcfl.hypotheses import (
    UNSEEN,
    LeadingClusters,
    Snapshot,
    ancestor_shares,
    cluster_numbers,
    smoothed_associations,
)
from experiments.partitions import occurrences
from experiments.runs.files import Pair
from experiments.runs.restore import newest_state, restore
from experiments.scores.gains import ModelScore, finetuned_scores, model_scores

if TYPE_CHECKING:
    from experiments.runs.runner import Experiment

Matrix = NDArray[np.float64]
BASELINE = "fedavg"
TIED = 1e-6
"""Difference of probabilities that are taken to be equal."""


@dataclass(frozen=True)
class Peer:
    """Co-association of a client with another client.

    Attributes:
        client: name of the other client.
        group: its true group after the last round, None if unknown.
        latest: probability after the last round that both clients share a cluster.
        mean: mean over all rounds of the probability that both were associated with one cluster.
    """

    client: str
    group: int | None
    latest: float
    mean: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientReport:
    """Data, association history and scores of one client.

    Clusters are numbered as in the leading hypothesis after the last round, in all rounds.

    Attributes:
        client: its name.
        group: true group after the last round, None if unknown.
        concepts: true groups at all time steps, such as `0 1 1`; empty where it does not change.
        time_step: of its test samples, that of the last round; None where the data have one.
        num_samples: samples by view, over all time steps.
        classes: (classes,) int64 samples by class over all views, up to the last class present.
        class_names: names of the classes by number; empty if the clients have none.
        labels: (rounds,) int64 cluster after each round in the hypothesis that then was the most
            probable, -1 before the client was seen.
        probabilities: (clusters,) association probabilities after the last round; zero if unseen.
        filtered: (rounds, clusters) association probabilities given the rounds up to each round.
        smoothed: (rounds, clusters) association probabilities of each round given all rounds.
        peers: all other clients by descending probability of sharing a cluster.
        scores: test scores of the client's fine-tuned model where the method has one, then of what
            serves it, of each cluster's model, and of FedAvg where it was run; empty without test
            samples.
        prediction_entropy: mean entropy over its test samples, nats; NaN without test samples.
        association_uncertainty: the part of `prediction_entropy` that comes from the unknown
            association, nats.
    """

    client: str
    group: int | None
    concepts: str
    time_step: int | None
    num_samples: Mapping[str, int]
    classes: NDArray[np.int64]
    labels: NDArray[np.int64]
    probabilities: Matrix
    filtered: Matrix
    smoothed: Matrix
    peers: Sequence[Peer]
    scores: Sequence[ModelScore]
    prediction_entropy: float
    association_uncertainty: float
    class_names: Sequence[str] = ()

    @property
    def cluster(self) -> int:
        """Cluster in the leading hypothesis after the last round, -1 for none."""
        return int(self.labels[-1])

    @property
    def believed(self) -> list[int]:
        """Most probable cluster after each round, -1 before the client was seen.

        Of equally probable ones, that of the leading hypothesis.
        """
        return [
            most_probable(row, label) if row.any() else UNSEEN
            for row, label in zip(self.filtered, self.labels.tolist(), strict=True)
        ]

    @property
    def entropy(self) -> float:
        """Entropy of the association after the last round, nats."""
        return max(float(entr(self.probabilities).sum()), 0.0)


def most_probable(probabilities: Matrix, preferred: int) -> int:
    """The most probable cluster.

    Args:
        probabilities: (clusters,) of a client.
        preferred: the one among equally probable ones; negative for none.
    """
    most = int(probabilities.argmax())
    tied = preferred >= 0 and probabilities[preferred] > probabilities[most] - TIED
    return preferred if tied else most


@dataclass(frozen=True, eq=False, kw_only=True)
class RunHistory:
    """A finished or interrupted run of one method and seed, restored for client reports.

    Attributes:
        pair: the method and seed.
        method: the method.
        rounds: number of rounds of the scenario.
        run: what it had learned by its newest checkpoint; its executor reaches the clients.
        clients: the clients' data of all time steps, in the order of the rows of all matrices.
        time_step: of the last round; its test samples are scored.
        labels: (rounds, clients) int64 clusters in the leading hypothesis after each round.
        latest: (clients, clusters) association probabilities after the last round.
        filtered: (clients, clusters) probabilities after each round given the rounds so far.
        smoothed: (clients, clusters) probabilities of each round given all rounds.
        carries_weights: whether hypothesis weights accumulate over rounds, so that `smoothed` is a
            posterior.
        baseline: FedAvg in the same folder, None if it has no checkpoint.
    """

    pair: Pair
    method: Method
    rounds: int
    run: Run
    clients: Sequence[ClientData]
    time_step: int
    labels: NDArray[np.int64]
    latest: Matrix
    filtered: Sequence[Matrix]
    smoothed: Sequence[Matrix]
    carries_weights: bool
    baseline: Run | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clients."""
        return self.run.clients

    def client_reports(self, clients: Sequence[str] | None = None) -> list[ClientReport]:
        """Reports of the named clients, of all clients by default."""
        names = self.names if clients is None else clients
        hypotheses, model, pooling = self.run.hypotheses, self.run.model, self.method.pooling
        tuned = self.run.ask(finetuned_scores(hypotheses, names, model, self.method))
        plain = self.run.ask(model_scores(hypotheses, names, model, pooling=pooling))
        scores = {client: [*tuned.get(client, ()), *found] for client, found in plain.items()}
        if self.baseline is not None:
            baseline = model_scores(
                self.baseline.hypotheses, names, model, BASELINE, clusters=False
            )
            for client, score in self.baseline.ask(baseline).items():
                scores[client] += score
        return [self._client_report(self.names.index(n), scores.get(n, ())) for n in names]

    @cached_property
    def _believed(self) -> Matrix:
        """(clients, clients) co-association probabilities after the last round."""
        return self.run.co_association()

    @cached_property
    def _rounds_together(self) -> sparse.csr_array:
        """Factor of the co-association matrix of the mean over rounds."""
        history = [snapshot.co_association() for snapshot in self.run.state.history]
        return sparse.csr_array(sparse.hstack(history) / np.sqrt(len(history)))

    def _client_report(self, row: int, scores: Sequence[ModelScore]) -> ClientReport:
        data, groups = self.clients[row], self.run.groups
        latest, factor = self._believed[row], self._rounds_together
        mean = (factor @ factor[[row]].T).toarray()[:, 0]
        peers = [
            Peer(
                other.client,
                groups.get(other.client),
                float(latest[index]),
                float(mean[index]),
            )
            for index, other in enumerate(self.clients)
            if index != row
        ]
        peers.sort(key=lambda p: (-round(p.latest, 6), -round(p.mean, 6), p.client))
        targets = np.concatenate([view.targets.numpy() for view in data.views.values()])
        entropy, association_uncertainty = self._uncertainty(data)
        return ClientReport(
            client=data.client,
            group=groups.get(data.client),
            concepts=_concepts(groups, data.client),
            time_step=self.time_step if num_steps(self.clients) > 1 else None,
            num_samples=_over_steps(data.num_samples),
            classes=occurrences(targets),
            class_names=self.run.classes,
            labels=self.labels[:, row],
            probabilities=self.latest[row],
            filtered=np.array([matrix[row] for matrix in self.filtered]),
            smoothed=np.array([matrix[row] for matrix in self.smoothed]),
            peers=peers,
            scores=scores,
            prediction_entropy=entropy,
            association_uncertainty=association_uncertainty,
        )

    def _uncertainty(self, data: ClientData) -> tuple[float, float]:
        views = at_step(data, self.time_step).views
        if not len(views.get(TEST, ())) or self.run.model.likelihood == "gaussian":
            return nan, nan
        run = replace(self.run, executor=None)
        prediction = run.predict(data.client, views[TEST].inputs)
        return float(prediction.entropy.mean()), float(prediction.association_uncertainty.mean())


def _concepts(groups: Mapping[str, int | None], client: str) -> str:
    return groups.text(client) if isinstance(groups, TrueGroups) and groups.change else ""


def _over_steps(num_samples: Mapping[str, int]) -> dict[str, int]:
    """Samples by kind of view, such as `train`, over all time steps."""
    sizes: dict[str, int] = {}
    for name, count in num_samples.items():
        kind = name.partition(":")[0]
        sizes[kind] = sizes.get(kind, 0) + count
    return sizes


def read_history(folder: Path, pair: Pair) -> RunHistory:
    """Restore the newest checkpoint of a method and seed together with the client data.

    Args:
        folder: folder of the run.
        pair: a method and seed with a checkpoint; see `experiments.runs.selection`.

    Raises:
        ValueError: a checkpoint is damaged or belongs to other clients, or the data are missing.
    """
    restored = restore(folder, pair)
    state = restored.state
    planned = state.planned_rounds or state.round
    history = restored.run.history
    latest = state.hypotheses.association_probabilities()
    filtered, smoothed = numbered_associations(history, latest)
    aggregation = restored.federation.method.aggregation
    return RunHistory(
        pair=pair,
        method=restored.federation.method,
        rounds=planned,
        run=restored.run,
        clients=restored.clients,
        time_step=state.time_step(restored.clients),
        labels=LeadingClusters.of(history).labels,
        latest=_wide(latest, filtered[-1].shape[1]),
        filtered=filtered,
        smoothed=smoothed,
        carries_weights=aggregation.carried_log_weight(-1.0) != 0.0,
        baseline=_baseline(folder, pair, restored.setup),
    )


def _baseline(folder: Path, pair: Pair, setup: Experiment | None) -> Run | None:
    other = Pair(BASELINE, pair.seed)
    if pair == other or newest_state(folder, other) is None:
        return None
    return restore(folder, other, setup).run


def numbered_associations(
    history: Sequence[Snapshot], latest: Matrix
) -> tuple[list[Matrix], list[Matrix]]:
    """Association probabilities of each round, with the same number of a cluster in all rounds.

    See `bcfl.hypotheses.cluster_numbers`.

    Args:
        history: snapshots of all rounds.
        latest: (clients, clusters) probabilities after the last round.

    Returns:
        (clients, clusters) probabilities given the rounds up to each round, and given all rounds.
    """
    numbers = cluster_numbers(history)
    found: tuple[list[Matrix], list[Matrix]] = [], []
    for row, own in enumerate(numbers):
        for known, matrices in zip((history[: row + 1], history), found, strict=True):
            leading = int(ancestor_shares(known, row + 1).argmax())
            matrices.append(_in_numbers(smoothed_associations(known, row + 1), own[leading]))
    width = max(matrix.shape[1] for matrix in (*found[0], *found[1], latest))
    filtered, smoothed = ([_wide(matrix, width) for matrix in matrices] for matrices in found)
    return filtered, smoothed


def _in_numbers(matrix: Matrix, numbers: NDArray[np.int64]) -> Matrix:
    """Probabilities whose first columns are clusters with these numbers."""
    free = (n for n in counted() if n not in numbers)
    columns = [*numbers.tolist(), *islice(free, matrix.shape[1] - len(numbers))]
    named = np.zeros((len(matrix), 1 + max(columns)))
    named[:, columns] = matrix
    return named


def _wide(matrix: Matrix, width: int) -> Matrix:
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))
