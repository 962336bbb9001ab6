"""Elastic weight consolidation (EWC, Kirkpatrick et al., 2017) in a federation: FedProx + EWC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking, candidate
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Consolidation
from bcfl.protocol.requests import Exchange, Score, Steps, Train
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum
from bcfl.runtime.seeds import lineage_key

ANCHOR, FISHER = "anchor of ", "Fisher information of "


@dataclass(frozen=True)
class EWC:
    """One cluster; clients are penalised for moving parameters that earlier time steps depend on.

    When a client first participates in a new time step, it computes the diagonal Fisher information
    of its samples of the previous step at the model that it receives, which becomes its anchor.
    Information of earlier steps decays. The expectation over labels is exact (diagonal Gauss-Newton
    matrix). The first time step, and hence static data, is without penalty. Clients keep both, so
    that neither is sent.

    Attributes:
        objective: local objective.
        weight: lambda of the penalty.
        decay: gamma, the share of earlier information that is retained at each time step.
    """

    objective: Objective
    weight: float = 10.0
    decay: float = 0.9

    def __post_init__(self) -> None:
        Consolidation(self.weight)
        if not 0 <= self.decay <= 1:
            raise ValueError(f"decay must lie in [0, 1], got {self.decay}")

    @property
    def num_clusters(self) -> int:
        """One."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Collect Fisher information, then train with the penalty.

        See `bcfl.policies.Policy.associate`.
        """
        new = yield from self._remembered(hypothesis, context)
        carried = {**hypothesis.carried_models, **new}
        labels = dict.fromkeys(context.participants, 0)
        chosen = candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
        steps = {c: context.step for c in context.participants if ANCHOR + c in new}
        state = {"remembered": {**hypothesis.state.get("remembered", {}), **steps}}
        return Ranking.only(
            replace(
                chosen,
                trainings=tuple(
                    self._penalised(training, carried) for training in chosen.trainings
                ),
                models=(*chosen.models, *carried.values()),
                carried_models=carried,
                state={**hypothesis.state, **(state if steps else {})},
            )
        )

    def _penalised(self, training: Train, carried: Mapping[str, Posterior]) -> Train:
        """The training with the penalty, where the client has an anchor."""
        if ANCHOR + training.client not in carried:
            return training
        keys = tuple(carried[name + training.client].key for name in (ANCHOR, FISHER))
        regularizers = (*training.objective.regularizers, Consolidation(self.weight))
        objective = replace(training.objective, regularizers=regularizers)
        references = (*training.references, keys)
        return replace(training, objective=objective, references=references, held=keys)

    def _remembered(
        self, hypothesis: Hypothesis, context: RoundContext
    ) -> Steps[Mapping[str, Posterior]]:
        """Anchor and Fisher information of each participant that answers."""
        (cluster,) = hypothesis.clusters
        view, samples = f"memory:{context.step - 1}", self.objective.curvature_samples
        remembered = hypothesis.state.get("remembered", {})
        scores = [
            Score(
                client=client,
                models=(cluster.key,),
                statistic=Evidence(),
                view=view,
                samples=samples,
                reported=False,
            )
            for client in context.participants
            if remembered.get(client, 0) < context.step
        ]
        replies = (yield Exchange.of(scores, (cluster,))) if scores else {}
        models: dict[str, Posterior] = {}
        for score in scores:
            if score not in replies:
                continue
            evidence: EvidenceSum = replies[score][cluster.key]
            fisher = evidence.curvature / evidence.num_samples
            before = hypothesis.carried_models.get(FISHER + score.client)
            if before is not None:
                fisher = fisher + self.decay * before.mean(context.model)
            past = "" if before is None else before.key
            name = lineage_key("fisher", score.client, cluster.key, past, context.round, self)
            models[ANCHOR + score.client] = cluster
            models[FISHER + score.client] = cluster.with_parameters(
                context.model, name, fisher, cluster.buffers(context.model)
            )
        return models
