"""One model for everybody that is held back where earlier time steps needed it: FedProx + EWC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bcfl.consolidation import Consolidation
from bcfl.hypothesis import Hypothesis
from bcfl.policies.policy import Ranking, RoundContext, candidate
from bcfl.policies.time_steps import TimeSteps
from bcfl.posterior import Posterior
from bcfl.requests import EvidenceSum, Exchange, Objective, Score, Steps, Train
from bcfl.seeds import lineage_key

ANCHOR, FISHER = "anchor of ", "Fisher information of "


@dataclass(frozen=True)
class ElasticCluster:
    """One cluster whose clients remember what mattered to them in the time steps before.

    In the last round of a time step each client reports the diagonal of the Fisher information of
    its samples at the model that it receives, which is then its anchor. The information of earlier
    steps decays. The expectation over labels is exact (the diagonal Gauss-Newton matrix). The first
    time step, and so all of static data, is without a penalty. Clients hold no state here: anchor
    and information travel, which a client that remembers could save.

    Attributes:
        objective: local objective.
        weight: lambda of the penalty.
        decay: gamma, the share of the earlier information that is kept at each time step.
        steps: the time steps of the run.
    """

    objective: Objective
    weight: float = 100.0
    decay: float = 0.9
    steps: TimeSteps = field(default_factory=TimeSteps)

    def __post_init__(self) -> None:
        Consolidation(self.weight)
        if not 0 <= self.decay <= 1:
            raise ValueError(f"decay must lie in [0, 1], got {self.decay}")

    @property
    def num_clusters(self) -> int:
        """One."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Train with what is remembered; at the end of a time step, remember it."""
        labels = dict.fromkeys(context.participants, 0)
        chosen = candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
        old = hypothesis.kept
        new = (yield from self._remembered(hypothesis, context)) if self.steps.ends(context) else {}
        return Ranking.only(
            replace(
                chosen,
                trainings=tuple(self._held(training, old) for training in chosen.trainings),
                models=(*chosen.models, *old.values()),
                kept={**old, **new},
            )
        )

    def _held(self, training: Train, kept: Mapping[str, Posterior]) -> Train:
        """The training with the penalty, where the client has an anchor."""
        if ANCHOR + training.client not in kept:
            return training
        keys = tuple(kept[name + training.client].key for name in (ANCHOR, FISHER))
        terms = (*training.objective.terms, Consolidation(self.weight))
        objective = replace(training.objective, terms=terms)
        return replace(training, objective=objective, references=(*training.references, keys))

    def _remembered(
        self, hypothesis: Hypothesis, context: RoundContext
    ) -> Steps[Mapping[str, Posterior]]:
        """Anchor and Fisher information of each participant that answers."""
        (cluster,) = hypothesis.clusters
        samples = self.objective.curvature_samples
        asked = [
            Score(c, (cluster.key,), "evidence", samples=samples) for c in context.participants
        ]
        replies = (yield Exchange.of(asked, (cluster,))) if asked else {}
        kept: dict[str, Posterior] = {}
        for score in asked:
            if score not in replies:
                continue
            evidence: EvidenceSum = replies[score][cluster.key]
            fisher = evidence.curvature / evidence.num_samples
            before = hypothesis.kept.get(FISHER + score.client)
            if before is not None:
                fisher = fisher + self.decay * before.mean(context.model)
            past = "" if before is None else before.key
            name = lineage_key("fisher", score.client, cluster.key, past, context.round, self)
            kept[ANCHOR + score.client] = cluster
            kept[FISHER + score.client] = cluster.moved(
                context.model, name, fisher, cluster.buffers(context.model)
            )
        return kept
