"""The story of a client in a run: where it was, how sure, whom it trains with, what it gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr

from bcfl import Run
from bcfl.data.clients import TEST, ClientData
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.history import smoothed_associations
from bcfl.hypotheses.matching import best_matching
from experiments.config.variants import Pair
from experiments.runs.restore import newest_state, restore
from experiments.scores.gains import Judge, ModelScore

if TYPE_CHECKING:
    from bcfl import FederationState

Matrix = NDArray[np.float64]
BASELINE = "fedavg"
SAME_SLOT = 1e-3
"""What it counts, in clients, that a cluster has the same number a round later."""


@dataclass(frozen=True)
class Companion:
    """Another client that a client trains with.

    Attributes:
        client: its name.
        group: its true group, None if unknown.
        now: probability, after the last round, that both are in one cluster.
        always: the same, mean over all rounds.
    """

    client: str
    group: int | None
    now: float
    always: float


@dataclass(frozen=True, eq=False)
class ClientReport:
    """What is known of one client. Clusters are numbered as in today's leading hypothesis.

    Attributes:
        client: its name.
        group: true group, None if unknown.
        num_samples: samples by view.
        classes: samples of each class up to the last that it has, all views together.
        probabilities: (clusters,) of today's association; zero for a client never seen.
        then: (rounds, clusters) association after each round as it was believed at that time.
        hindsight: (rounds, clusters) the same, weighed by today's hypotheses.
        companions: all other clients, those most together with it first.
        scores: on its test samples: what serves it, each cluster, then FedAvg where it was run;
            empty without test samples.
        prediction_entropy: mean over its test samples, nats; NaN without any.
        association_uncertainty: share of it, in nats, that is due to not knowing the cluster.
    """

    client: str
    group: int | None
    num_samples: Mapping[str, int]
    classes: NDArray[np.int64]
    probabilities: Matrix
    then: Matrix
    hindsight: Matrix
    companions: Sequence[Companion]
    scores: Sequence[ModelScore]
    prediction_entropy: float
    association_uncertainty: float

    @property
    def cluster(self) -> int:
        """Most probable cluster today, -1 if it was never seen."""
        return int(self.probabilities.argmax()) if self.probabilities.any() else UNSEEN

    @property
    def entropy(self) -> float:
        """Entropy of today's association, nats."""
        return max(float(entr(self.probabilities).sum()), 0.0)

    @property
    def clusters(self) -> list[int]:
        """Most probable cluster after each round, -1 before it was seen."""
        return [int(row.argmax()) if row.any() else UNSEEN for row in self.then]


@dataclass(frozen=True, eq=False)
class Chronicle:
    """A run of one method with one seed, read back so that stories can be told.

    Attributes:
        pair: the method and seed.
        rounds: rounds that were asked for.
        state: the newest checkpoint.
        clients: the clients' data, in the order of the rows of all matrices.
        now: (clients, clusters) association probabilities after the last round.
        then: the same after each round, as believed at that time.
        hindsight: the same, weighed by today's hypotheses.
        remembers: whether weights go on from round to round, so that hindsight is a posterior.
        judge: scores models on the clients' test samples.
        baseline: newest checkpoint of FedAvg in the same folder, None if there is none.
    """

    pair: Pair
    rounds: int
    state: FederationState
    clients: Sequence[ClientData]
    now: Matrix
    then: Sequence[Matrix]
    hindsight: Sequence[Matrix]
    remembers: bool
    judge: Judge
    baseline: FederationState | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clients."""
        return self.state.hypotheses.best.association.clients

    def stories(self, clients: Sequence[str] | None = None) -> list[ClientReport]:
        """The stories of some clients, of all if none are named."""
        wanted = self.names if clients is None else clients
        judged = [data for data in self.clients if data.client in wanted]
        judge = Judge(self.judge.model, judged, self.judge.seed)
        scores = judge.scores(self.state)
        if self.baseline is not None:
            for client, found in judge.scores(self.baseline, BASELINE, clusters=False).items():
                scores[client] += found
        return [self._story(self.names.index(one), scores.get(one, ())) for one in wanted]

    @cached_property
    def _shared(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Factors of the probabilities of sharing a cluster: after the last round, and so far."""
        history = [snapshot.co_association() for snapshot in self.state.history]
        every = sparse.hstack(history) / np.sqrt(len(history))
        return history[-1], sparse.csr_array(every)

    def _story(self, row: int, scores: Sequence[ModelScore]) -> ClientReport:
        data = self.clients[row]
        now, always = ((factor @ factor[[row]].T).toarray()[:, 0] for factor in self._shared)
        companions = [
            Companion(other.client, other.group, float(now[index]), float(always[index]))
            for index, other in enumerate(self.clients)
            if index != row
        ]
        companions.sort(key=lambda c: (-round(c.now, 6), -round(c.always, 6), c.client))
        labels = np.concatenate([view.targets.numpy() for view in data.views.values()])
        return ClientReport(
            data.client,
            data.group,
            data.num_samples,
            np.bincount(labels),
            self.now[row],
            np.array([matrix[row] for matrix in self.then]),
            np.array([matrix[row] for matrix in self.hindsight]),
            companions,
            scores,
            *self._uncertainty(data),
        )

    def _uncertainty(self, data: ClientData) -> tuple[float, float]:
        if not len(data.views.get(TEST, ())):
            return nan, nan
        run = Run(self.judge.model, self.state, (), {})
        prediction = run.predict(data.client, data.views[TEST].inputs)
        return float(prediction.entropy.mean()), float(prediction.association_uncertainty.mean())


def read_chronicle(folder: Path, pair: Pair) -> Chronicle:
    """Read the newest checkpoint of a method and seed, and divide the data again.

    Args:
        folder: folder of the run.
        pair: one that has a checkpoint, see `experiments.runs.selection`.

    Raises:
        ValueError: a checkpoint is damaged or of other clients, or the data are missing.
    """
    found = restore(folder, pair)
    state, setup = found.state, found.setup
    history = state.history
    now = state.hypotheses.association_probabilities()
    numbers = range(1, len(history) + 1)
    then = [smoothed_associations(history[:number], number) for number in numbers]
    hindsight = [smoothed_associations(history, number) for number in numbers]
    aggregation = setup.method(pair.method).aggregation
    return Chronicle(
        pair,
        setup.scenario.federation.rounds,
        state,
        found.clients,
        now,
        renamed([*then, now])[:-1],
        renamed([*hindsight, now])[:-1],
        aggregation.carried_log_weight(-1.0) != 0.0,
        Judge(setup.model, found.clients, pair.seed),
        None if pair.method == BASELINE else newest_state(folder, Pair(BASELINE, pair.seed)),
    )


def renamed(matrices: Sequence[Matrix]) -> list[Matrix]:
    """Associations of consecutive rounds with clusters named as in the last.

    A cluster passes its name on to the one a round earlier that shares most clients with it, one
    to one; those that are gone get names of their own.

    Args:
        matrices: (clients, clusters) probabilities; the number of clusters may change.

    Returns:
        Matrices with as many columns as there are names.
    """
    width = max(matrix.shape[1] for matrix in matrices)
    wide = [np.pad(matrix, ((0, 0), (0, width - matrix.shape[1]))) for matrix in matrices]
    found = [wide[-1]]
    names = np.arange(width)
    for earlier, later in zip(reversed(wide[:-1]), reversed(wide[1:]), strict=True):
        names = names[best_matching(earlier.T @ later + SAME_SLOT * np.eye(width))]
        found.append(earlier[:, np.argsort(names)])
    return found[::-1]
