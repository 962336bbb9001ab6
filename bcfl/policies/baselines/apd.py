"""Additive parameter decomposition (APD, Yoon et al., 2020) in a federation: FedProx + APD.

Each client's weights are shared parameters under a mask of its own plus adaptive parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from bcfl.architecture.decomposition import SHARED, composed, masks, refitted, restarted
from bcfl.architecture.layout import Part
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis, model_of_step
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Given, Ranking
from bcfl.protocol.adaptive_terms import Retention
from bcfl.protocol.loss_terms import Regularizer
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Consolidation
from bcfl.protocol.requests import Steps, Train
from bcfl.runtime.seeds import derive_seed, lineage_key

Models = Mapping[str, Posterior]


@dataclass(frozen=True)
class APD:
    """One cluster per client; clusters share the global block of the network.

    At each new time step masks and adaptive parameters are re-initialised, and a penalty keeps the
    weights of earlier steps, as composed of shared, masked and adaptive parameters, near their
    values. What a client keeps of an earlier step predicts its samples (`bcfl.Hypothesis.at_step`).
    Static data are one time step without penalty.

    With `sparsity`, the masks and adaptive parameters of earlier steps are trained on, as in the
    paper: the penalty is its least value over the adaptive parameters (`Retention`), which are
    refitted to the shared parameters at the start of each round, with one gradient step of the
    masks in place of as many as those of the network. Without, they are fixed, as in the program of
    FedWeIT, and the penalty acts on the shared parameters alone.

    Attributes:
        objective: local objective.
        retention: lambda_2, weight of the penalty. SGD is unstable without `sparsity` where
            learning rate x retention exceeds 2.
        sparsity: lambda_1, weight of the absolute adaptive parameters of earlier steps; None leaves
            them fixed.
    """

    objective: Objective
    retention: float = 1.0
    sparsity: float | None = None

    def __post_init__(self) -> None:
        self.penalty  # noqa: B018 - checks the weights

    @property
    def penalty(self) -> Regularizer:
        """The penalty on changes of an earlier time step."""
        if self.sparsity is None:
            return Consolidation(self.retention, Part(SHARED))
        return Retention(self.retention, self.sparsity)

    @property
    def num_clusters(self) -> int:
        """One, from which each client's own cluster continues."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `bcfl.policies.Policy.associate`."""
        begins = hypothesis.state.get("step", 0) < context.step and len(hypothesis.clusters) > 1
        current = self._at_new_step(hypothesis, context) if begins else hypothesis
        if self.sparsity is not None:
            current = self._refitted(current, context)
        (chosen,) = yield from LocalTraining(self.objective).associate(current, context)
        work = [self._penalised(training, current, context) for training in chosen.trainings]
        references = {key: model for _, models in work for key, model in models.items()}
        models = (*chosen.models, *(current.clusters if begins else ()), *references.values())
        named = {key for training, _ in work for key in training.models}
        return Ranking.only(
            replace(
                chosen,
                trainings=tuple(training for training, _ in work),
                models=tuple(model for model in models if model.key in named),
                origins=tuple(Given(model, index) for index, model in enumerate(current.clusters))
                if begins
                else chosen.origins,
            )
        )

    def _penalised(
        self, training: Train, hypothesis: Hypothesis, context: RoundContext
    ) -> tuple[Train, Models]:
        """The training with a penalty for each earlier step of the client, and its references."""
        pairs = [
            self._references(step, training.client, hypothesis.carried_models, context)
            for step in range(context.step)
            if model_of_step(training.client, step) in hypothesis.carried_models
        ]
        objective, models = training.objective, {m.key: m for pair in pairs for m in pair}
        terms = (*objective.regularizers, *(self.penalty for _ in pairs))
        references = tuple((first.key, second.key) for first, second in pairs)
        penalised = replace(
            training,
            objective=replace(objective, regularizers=terms),
            references=(*training.references, *references),
            held=tuple(models),
        )
        return penalised, models

    def _references(
        self, step: int, client: str, carried: Models, context: RoundContext
    ) -> tuple[Posterior, Posterior]:
        """What the penalty refers to: earlier weights, and masks in the places of shared ones."""
        kept = carried[model_of_step(client, step)]
        found = masks(context.model, kept.mean(context.model))
        if self.sparsity is None:
            return kept, _in_place_of_shared(kept, "squared masks", found.square(), context)
        return carried[_weights(client, step)], _in_place_of_shared(kept, "masks", found, context)

    def _at_new_step(self, hypothesis: Hypothesis, context: RoundContext) -> Hypothesis:
        """The hypothesis at the start of a time step; newcomers have no earlier weights."""
        model, last = context.model, context.step - 1
        clusters, carried = list(hypothesis.clusters), dict(hypothesis.carried_models)
        for client, label in hypothesis.association.by_client.items():
            before = clusters[label]
            mean, buffers = before.mean(model), before.buffers(model)
            carried[model_of_step(client, last)] = before
            if self.sparsity is not None:
                whole = _in_place_of_shared(before, "weights", composed(model, mean), context)
                carried[_weights(client, last)] = whole
            seed = derive_seed(context.seed, context.round, client, "masks")
            key = lineage_key("restarted", before.key, seed)
            fresh = before.with_parameters(model, key, restarted(model, mean, seed), buffers)
            common = (spec.name for spec in model.blocks if spec.scope == "global")
            clusters[label] = fresh.with_blocks(dict.fromkeys(common, before))
        state = {**hypothesis.state, "step": context.step}
        return replace(hypothesis, clusters=tuple(clusters), carried_models=carried, state=state)

    def _refitted(self, hypothesis: Hypothesis, context: RoundContext) -> Hypothesis:
        """The hypothesis whose participants have trained their parts of earlier time steps."""
        model, carried = context.model, dict(hypothesis.carried_models)
        threshold = Retention(self.retention, self.sparsity or 0.0).threshold
        rate = self.objective.learning_rate * self.retention
        for client in context.participants:
            step_size = rate * self.objective.steps(context.num_samples[client])
            label = hypothesis.association.label(client)
            for step in range(context.step if label != UNSEEN else 0):
                kept = carried.get(model_of_step(client, step))
                if kept is None:
                    continue
                today = kept.with_blocks({SHARED: hypothesis.clusters[label]})
                weights = carried[_weights(client, step)].mean(model)
                mean = refitted(model, today.mean(model), weights, threshold, step_size)
                key = lineage_key("refitted", today.key, context.round)
                parts = kept.with_parameters(model, key, mean, kept.buffers(model))
                carried[model_of_step(client, step)] = parts.with_blocks({SHARED: today})
        return replace(hypothesis, carried_models=carried)


def _weights(client: str, step: int) -> str:
    return f"weights of {client} at time step {step}"


def _in_place_of_shared(
    posterior: Posterior, what: str, values: Tensor, context: RoundContext
) -> Posterior:
    """The model with other values in the places of its shared parameters."""
    model, key = context.model, lineage_key(what, posterior.key)
    other = posterior.with_parameters(model, key, values, posterior.buffers(model))
    return posterior.with_blocks({SHARED: other})
