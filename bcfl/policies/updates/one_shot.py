"""One-shot clustering by cosine distances of updates: OCFL, and BCL (Briggs et al., 2020).

Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning", algorithm 1, and
Briggs, Fan and Andras (2020) differ in the round of the clustering and in its algorithm. Until then
all clients form one cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Ranking, candidate
from bcfl.policies.updates.clustering_temperature import (
    TemperatureRise,
    Trigger,
    clustering_temperature,
)
from bcfl.policies.updates.divisions import Divisions, divide, regrouped
from bcfl.policies.updates.local_updates import LocalUpdates, local_updates
from bcfl.policies.updates.update_clustering import HDBSCANClustering, UpdateClustering
from bcfl.policies.updates.update_similarity import cosine_distances
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import derive_seed

DIVIDED = "model that was divided first"
SHOTS = "shots"
DENSITY: UpdateClustering = HDBSCANClustering()
RISE: Trigger = TemperatureRise()


@dataclass(frozen=True)
class OneShotClustering:
    """Train one model for all clients until the trigger fires, then cluster them once.

    The clustering takes effect in its own round: each part continues from the common model and
    receives the updates of its clients. Later clients join the part whose mean update has the
    largest cosine with their own. Until then the clustering temperature is logged. Distances are
    those of trainable parameters.

    With several shots (section V of the paper) clients are clustered again in later rounds in which
    the trigger fires, so that groups are found whose clients were absent at first. Distances are
    then those of the participants' changes since the model that was divided first. A group goes on
    from the cluster that most of its clients were in, and groups that go on from one cluster
    divide it; absent clients keep theirs.

    Attributes:
        objective: local objective. Both papers take the unweighted mean of the updates of a
            cluster, which is curvature `uniform`.
        clustering: clustering algorithm.
        trigger: decides the round.
        shots: most rounds in which clients are clustered.
    """

    objective: Objective
    clustering: UpdateClustering = DENSITY
    trigger: Trigger = RISE
    shots: int = 1

    def __post_init__(self) -> None:
        check_whole("shots", self.shots)

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Assign late clients, train, and cluster when triggered.

        See `bcfl.policies.Policy.associate`.
        """
        earlier = Divisions.of(hypothesis)
        divisions, labels = yield from earlier.assign(hypothesis, context, self.objective)
        if hypothesis.state.get("clustered"):
            chosen = candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
            return Ranking.only(divisions.carried_by(chosen, {"clustered": True}))
        updates = yield from local_updates(hypothesis, labels, self.objective, context)
        first = hypothesis.carried_models.get(DIVIDED, hypothesis.clusters[0])
        chosen = updates.candidate(self.objective)
        if SHOTS in hypothesis.state:
            chosen = self._waiting(chosen, divisions, hypothesis.state[SHOTS], first)
        if len(updates) < 2:
            return Ranking.only(chosen)
        distances = cosine_distances(updates.products_since(first))
        temperature = clustering_temperature(distances, self.trigger.norm)
        before = hypothesis.state.get("temperature")
        if self.trigger.fires(temperature, before, context):
            chosen = self._shot(chosen, updates, distances, divisions, context)
        if not chosen.state.get("clustered"):
            chosen = replace(chosen, state={**chosen.state, "temperature": temperature})
        return replace(Ranking.only(chosen), facts={"clustering_temperature": temperature})

    def _shot(
        self,
        chosen: Candidate,
        updates: LocalUpdates,
        distances: NDArray[np.float64],
        divisions: Divisions,
        context: RoundContext,
    ) -> Candidate:
        hypothesis = updates.hypothesis
        seed = derive_seed(context.seed, context.round, "one-shot clustering")
        groups = self.clustering.groups(distances, seed)
        homes = majority(groups, updates.clusters)
        clusters, new = divide(homes, groups, len(hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, clusters), strict=True))
        after = divisions.extended(hypothesis, new, updates.labels)
        shots = hypothesis.state.get(SHOTS, 0) + 1
        chosen = regrouped(chosen, labels, new)
        if shots == self.shots:
            return after.carried_by(chosen, {"clustered": True})
        first = hypothesis.carried_models.get(DIVIDED, hypothesis.clusters[0])
        return self._waiting(chosen, after, shots, first)

    def _waiting(
        self, chosen: Candidate, divisions: Divisions, shots: int, first: Posterior
    ) -> Candidate:
        """The candidate between two shots, with the model that was divided first."""
        carried = divisions.carried_by(chosen, {SHOTS: shots})
        return replace(carried, carried_models={**carried.carried_models, DIVIDED: first})


def majority(groups: NDArray[np.int64], clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """(clients,) cluster that most clients of a client's group are in; the lowest of several.

    Args:
        groups: (clients,) group of each client.
        clusters: (clients,) cluster of each client.
    """
    homes = clusters.copy()
    for group in np.unique(groups):
        members = groups == group
        homes[members] = np.bincount(clusters[members]).argmax()
    return homes
