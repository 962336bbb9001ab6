"""Additive parameter decomposition (APD, Yoon et al., 2020) in a federation: FedProx + APD.

Each client's weights are shared parameters under a mask of its own plus adaptive parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bcfl.architecture.decomposition import SHARED, restarted, squared_masks
from bcfl.architecture.layout import Part
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
    """One cluster per client; clusters share the global block of the network.

    At each new time step masks and adaptive parameters are re-initialised, and a quadratic penalty
    keeps the weights of earlier steps, as composed of shared, masked and adaptive parameters, near
    their values. The paper continues to train earlier masks and adaptive parameters; here they are
    fixed, so that the penalty acts on the shared parameters alone. Static data are one time step
    without penalty.

    Attributes:
        objective: local objective.
        retention: lambda_2, weight of the penalty. The authors' value of 100 is for Adam: SGD is
            unstable where learning rate x retention exceeds 2.
    """

    objective: Objective
    retention: float = 1.0

    def __post_init__(self) -> None:
        Consolidation(self.retention)

    @property
    def num_clusters(self) -> int:
        """One, from which each client's own cluster continues."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `Policy.associate`."""
        begins = hypothesis.state.get("step", 0) < context.step and len(hypothesis.clusters) > 1
        current = _at_new_step(hypothesis, context) if begins else hypothesis
        (chosen,) = yield from LocalTraining(self.objective).associate(current, context)
        earlier = range(context.step)
        penalised = tuple(self._penalised(t, current, earlier) for t in chosen.trainings)
        referenced = {key for training in penalised for key in training.models}
        models = (*chosen.models, *current.clusters, *current.carried_models.values())
        return Ranking.only(
            replace(
                chosen,
                trainings=penalised,
                models=tuple(model for model in models if model.key in referenced),
                origins=tuple(map(Given, current.clusters)) if begins else chosen.origins,
            )
        )

    def _penalised(self, training: Train, hypothesis: Hypothesis, earlier: Iterable[int]) -> Train:
        """The training with a penalty for each earlier time step of the client."""
        names = [
            (_name(MODEL, step, training.client), _name(MASKS, step, training.client))
            for step in earlier
        ]
        carried = hypothesis.carried_models
        pairs = [(carried[m].key, carried[masks].key) for m, masks in names if m in carried]
        penalty = Consolidation(self.retention, Part(SHARED))
        objective = training.objective
        return replace(
            training,
            objective=replace(
                objective, regularizers=(*objective.regularizers, *(penalty for _ in pairs))
            ),
            references=(*training.references, *pairs),
        )


def _name(what: str, step: int, client: str) -> str:
    return f"{what} of {client} at time step {step}"


def _at_new_step(hypothesis: Hypothesis, context: RoundContext) -> Hypothesis:
    """The hypothesis at the start of a time step; clients never seen have no earlier weights."""
    model = context.model
    clusters, carried = list(hypothesis.clusters), dict(hypothesis.carried_models)
    for client, label in hypothesis.association.by_client.items():
        before = clusters[label]
        mean, buffers = before.mean(model), before.buffers(model)
        carried[_name(MODEL, context.step - 1, client)] = before
        key = lineage_key(MASKS, before.key)
        squared = before.with_parameters(model, key, squared_masks(model, mean), buffers)
        carried[_name(MASKS, context.step - 1, client)] = before.with_blocks({SHARED: squared})
        seed = derive_seed(context.seed, context.round, client, "masks")
        key = lineage_key("restarted", before.key, seed)
        fresh = before.with_parameters(model, key, restarted(model, mean, seed), buffers)
        common = (spec.name for spec in model.blocks if spec.scope == "global")
        clusters[label] = fresh.with_blocks(dict.fromkeys(common, before))
    state = {**hypothesis.state, "step": context.step}
    return replace(hypothesis, clusters=tuple(clusters), carried_models=carried, state=state)
