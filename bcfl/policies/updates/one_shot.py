"""One-shot clustering by cosine distances of updates: OCFL, and BCL (Briggs et al., 2020).

Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning", algorithm 1, and
Briggs, Fan and Andras (2020) differ in the round of the clustering and in its algorithm. Until then
all clients form one cluster.
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
    """Train one model for all clients until the trigger fires, then cluster them once.

    The clustering takes effect in its own round: each part continues from the common model and
    receives the updates of its clients. Later clients join the part whose mean update has the
    largest cosine with their own. Until then the clustering temperature is logged. Distances are
    those of trainable parameters.

    Attributes:
        objective: local objective. Both papers take the unweighted mean of the updates of a
            cluster, which is curvature `uniform`.
        clustering: clustering algorithm.
        trigger: decides the round.
    """

    objective: Objective
    clustering: UpdateClustering = DENSITY
    trigger: Trigger = RISE

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Assign late clients, train, and cluster when triggered. See `Policy.associate`."""
        earlier = Divisions.of(hypothesis)
        divisions, labels = yield from earlier.assign(hypothesis, context, self.objective)
        if hypothesis.state.get("clustered"):
            chosen = candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
            return Ranking.only(divisions.carried_by(chosen, {"clustered": True}))
        updates = yield from local_updates(hypothesis, labels, self.objective, context)
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
        clusters, new = divide(updates.clusters, groups, len(updates.hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, clusters), strict=True))
        after = divisions.extended(updates.hypothesis, new, updates.labels)
        return after.carried_by(regrouped(chosen, labels, new), {"clustered": True})
