"""Clients with masks and adaptive parameters of their own on shared ones: FedProx + APD."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bcfl.architecture.decomposition import SHARED, restarted, squared_masks
from bcfl.architecture.layout import Part
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Given, Ranking
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Consolidation
from bcfl.protocol.requests import Steps, Train
from bcfl.runtime.seeds import derive_seed, lineage_key

MODEL, MASKS = "model", "squared masks"


@dataclass(frozen=True)
class APD:
    """Every client has its own cluster; what clusters share is the global block of the network.

    With each new time step, masks and adaptive parameters start anew, and the weights of earlier
    steps, made of the shared parameters and of what was the client's own then, are held where they
    were. The paper goes on training the earlier masks and adaptive parameters; here they stay, so
    the shared ones alone feel it. Static data are one time step, in which nothing is held.

    Attributes:
        objective: local objective.
        retention: lambda_2, strength of the hold. The 100 of the authors goes with Adam: SGD is
            unstable where learning rate x retention exceeds 2.
    """

    objective: Objective
    retention: float = 1.0

    def __post_init__(self) -> None:
        Consolidation(self.retention)

    @property
    def num_clusters(self) -> int:
        """One, from which each client's own continues."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `Policy.associate`."""
        begins = hypothesis.state.get("step", 0) < context.step and len(hypothesis.clusters) > 1
        begun = _begun(hypothesis, context) if begins else hypothesis
        (chosen,) = yield from LocalTraining(self.objective).associate(begun, context)
        earlier = range(context.step)
        held = tuple(self._held(training, begun, earlier) for training in chosen.trainings)
        named = {key for training in held for key in training.models}
        models = (*chosen.models, *begun.clusters, *begun.carried_models.values())
        return Ranking.only(
            replace(
                chosen,
                trainings=held,
                models=tuple(model for model in models if model.key in named),
                origins=tuple(map(Given, begun.clusters)) if begins else chosen.origins,
            )
        )

    def _held(self, training: Train, hypothesis: Hypothesis, earlier: Iterable[int]) -> Train:
        """The training with a hold for each time step that the client remembers."""
        named = [
            (_name(MODEL, step, training.client), _name(MASKS, step, training.client))
            for step in earlier
        ]
        kept = hypothesis.carried_models
        pairs = [(kept[model].key, kept[masks].key) for model, masks in named if model in kept]
        hold = Consolidation(self.retention, Part(SHARED))
        objective = training.objective
        return replace(
            training,
            objective=replace(
                objective, regularizers=(*objective.regularizers, *(hold for _ in pairs))
            ),
            references=(*training.references, *pairs),
        )


def _name(what: str, step: int, client: str) -> str:
    return f"{what} of {client} at time step {step}"


def _begun(hypothesis: Hypothesis, context: RoundContext) -> Hypothesis:
    """The hypothesis at the start of a time step; clients never seen have nothing to keep."""
    model, association = context.model, hypothesis.association
    clusters, kept = list(hypothesis.clusters), dict(hypothesis.carried_models)
    for client, label in zip(association.clients, association.labels, strict=True):
        if label == UNSEEN:
            continue
        before = clusters[label]
        mean, buffers = before.mean(model), before.buffers(model)
        kept[_name(MODEL, context.step - 1, client)] = before
        key = lineage_key(MASKS, before.key)
        squared = before.with_parameters(model, key, squared_masks(model, mean), buffers)
        kept[_name(MASKS, context.step - 1, client)] = before.with_blocks({SHARED: squared})
        seed = derive_seed(context.seed, context.round, client, "masks")
        key = lineage_key("restarted", before.key, seed)
        fresh = before.with_parameters(model, key, restarted(model, mean, seed), buffers)
        common = (spec.name for spec in model.blocks if spec.scope == "global")
        clusters[label] = fresh.with_blocks(dict.fromkeys(common, before))
    state = {**hypothesis.state, "step": context.step}
    return replace(hypothesis, clusters=tuple(clusters), carried_models=kept, state=state)
