"""One-shot clustering by the cosine distances of updates: OCFL, and the method of Briggs et al.

Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning", algorithm 1, and
Briggs, Fan and Andras (2020), which differ in when the shot is taken and in how clients are
clustered. Before it there is one cluster with all clients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bcfl.hypotheses.hypothesis import Hypothesis
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
from bcfl.runtime.seeds import derive_seed

DENSITY: UpdateClustering = HDBSCANClustering()
RISE: Trigger = TemperatureRise()


@dataclass(frozen=True)
class OneShotClustering:
    """Train one model for all; when the trigger fires, cluster the clients once and for all.

    The shot takes effect in its own round: each part continues from the common model and receives
    the updates of its clients. Clients that come later join the part that their update resembles
    most. Up to the shot the clustering temperature is reported as a fact of the round. Distances
    are of trainable parameters only.

    Attributes:
        objective: local objective. Both papers take the unweighted mean of the updates of a
            cluster, which is curvature `uniform`.
        clustering: how clients are clustered.
        trigger: when.
    """

    objective: Objective
    clustering: UpdateClustering = DENSITY
    trigger: Trigger = RISE

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Place late clients, train, and take the shot if its time has come."""
        known = Divisions.of(hypothesis)
        divisions, places = yield from known.place(hypothesis, context, self.objective)
        if hypothesis.state.get("clustered"):
            chosen = candidate(hypothesis, places, self.objective, num_samples=context.num_samples)
            return Ranking.only(divisions.remembered(chosen, {"clustered": True}))
        updates = yield from local_updates(hypothesis, places, self.objective, context)
        chosen = updates.candidate(self.objective)
        if len(updates) < 2:
            return Ranking.only(chosen)
        temperature = clustering_temperature(cosine_distances(updates.products), self.trigger.norm)
        before = hypothesis.state.get("temperature")
        if self.trigger.fires(temperature, before, context):
            chosen = self._shot(chosen, updates, divisions, context)
        else:
            chosen = replace(chosen, state={"temperature": temperature})
        return replace(Ranking.only(chosen), facts={"clustering_temperature": temperature})

    def _shot(
        self, chosen: Candidate, updates: LocalUpdates, divisions: Divisions, context: RoundContext
    ) -> Candidate:
        seed = derive_seed(context.seed, context.round, "one-shot clustering")
        groups = self.clustering.groups(cosine_distances(updates.products), seed)
        found, made = divide(updates.clusters, groups, len(updates.hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, found), strict=True))
        after = divisions.extended(updates.hypothesis, made, updates.labels)
        return after.remembered(regrouped(chosen, labels, made), {"clustered": True})
