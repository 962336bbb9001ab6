"""Divisions of clusters, and the assignment of clients that were absent (Sattler et al., 2020).

A client that is absent in the round of a division is assigned when it returns: it trains once from
the model that was divided, and joins the part whose mean update has the largest cosine with its
own. With several divisions it descends the tree of divisions (section V of the paper). The models
that this requires are carried on until every client is assigned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue
from bcfl.policies.trainings import trainings
from bcfl.policies.updates.update_similarity import cosine_with_mean, inner_products
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Steps


@dataclass(frozen=True)
class Division:
    """A cluster that was divided.

    Attributes:
        cluster: its number.
        parts: numbers of the clusters that came of it.
    """

    cluster: int
    parts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Divisions:
    """Divisions of clusters that some client has still to be assigned by.

    Attributes:
        divisions: in order of time.
        waiting: for clients that were seen before but missed a division, the index of the first
            one that they missed. Clients never seen have missed all.
        models: for each division, the model that was divided, and those of the parts after the
            round of the division.
    """

    divisions: tuple[Division, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, Posterior] = field(default_factory=dict)

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Divisions:
        """Read from the state of a hypothesis; models of the last round's parts are added."""
        state = hypothesis.state
        divisions = tuple(
            Division(cluster, tuple(parts)) for cluster, parts in state.get("divisions", [])
        )
        models = dict(hypothesis.carried_models)
        for position, division in enumerate(divisions):
            for part in division.parts:
                models.setdefault(f"{position} part {part}", hypothesis.clusters[part])
        return cls(divisions, dict(state.get("waiting", {})), models)

    def carried_by(self, chosen: Candidate, state: Mapping[str, Any]) -> Candidate:
        """A candidate whose state carries the divisions on, while some client waits for them.

        Args:
            chosen: the candidate.
            state: other state of the policy.
        """
        all_seen = bool((chosen.association.labels != UNSEEN).all())
        if all_seen and not self.waiting:
            return replace(chosen, state=dict(state), carried_models={})
        divisions = [[division.cluster, list(division.parts)] for division in self.divisions]
        carried = {"divisions": divisions, "waiting": dict(self.waiting)} if divisions else {}
        return replace(chosen, state={**state, **carried}, carried_models=self.models)

    def extended(
        self, hypothesis: Hypothesis, new: Sequence[Division], present: Mapping[str, int]
    ) -> Divisions:
        """With the divisions of a round.

        Args:
            hypothesis: parent, from before the round.
            new: divisions of the round; those with one part are ignored.
            present: participants of the round.
        """
        waiting, models = dict(self.waiting), dict(self.models)
        real = [division for division in new if len(division.parts) > 1]
        for position, division in enumerate(real, start=len(self.divisions)):
            models[f"{position} divided"] = hypothesis.clusters[division.cluster]
            for client, label in hypothesis.association.by_client.items():
                if label == division.cluster and client not in present:
                    waiting.setdefault(client, position)
        return Divisions((*self.divisions, *real), waiting, models)

    def assign(
        self, hypothesis: Hypothesis, context: RoundContext, objective: Objective
    ) -> Steps[tuple[Divisions, dict[str, int]]]:
        """Assign participants that missed divisions.

        Args:
            hypothesis: parent, from before the round.
            context: the round.
            objective: local objective from the models that were divided.

        Returns:
            The divisions with fewer clients waiting, and the cluster of each participant except
            those that gave no answer.
        """
        largest = int(hypothesis.association.sizes.argmax())
        root = self.divisions[0].cluster if self.divisions else largest
        previous = hypothesis.association.by_client
        labels = {client: previous.get(client, root) for client in context.participants}
        missed = {
            c: self.waiting.get(c, len(self.divisions)) if c in previous else 0 for c in labels
        }
        for position, division in enumerate(self.divisions):
            moving = [
                c for c, k in labels.items() if k == division.cluster and missed[c] <= position
            ]
            if not moving:
                continue
            start = self.models[f"{position} divided"]
            work = trainings(
                hypothesis, dict.fromkeys(moving, start.key), objective, context.num_samples
            )
            models = (*hypothesis.clusters, start, *work.models)
            replies = yield Exchange.of(work.requests, models)
            parts = [self.models[f"{position} part {part}"] for part in division.parts]
            for training in work.requests:
                if training not in replies:
                    del labels[training.client]
                    continue
                nearest = nearest_part(context.model, start, replies[training].mean, parts)
                labels[training.client] = division.parts[nearest]
        waiting = {c: index for c, index in self.waiting.items() if c not in labels}
        return replace(self, waiting=waiting), labels


def nearest_part(
    model: Model, start: Posterior, trained: Tensor, parts: Sequence[Posterior]
) -> int:
    """Index of the part whose update has the largest cosine with a client's update.

    Args:
        model: the architecture.
        start: model that all trained from.
        trained: (parameters,) the client's trained parameters.
        parts: models of the parts after the round of their division.
    """
    origin = start.mean(model)
    ends = [trained, *(part.mean(model) for part in parts)]
    products = inner_products([origin] * len(ends), ends)
    return int(np.argmax([cosine_with_mean(products, 0, [row]) for row in range(1, len(ends))]))


def divide(
    labels: NDArray[np.int64], groups: NDArray[np.int64], num_clusters: int
) -> tuple[NDArray[np.int64], list[Division]]:
    """Divide clusters into groups of their clients.

    The largest group keeps its cluster's number, the others get the next free ones; equal sizes
    are ordered by their first client.

    Args:
        labels: (clients,) cluster of each client.
        groups: (clients,) group of each client, any numbers, compared within clusters only.
        num_clusters: number of clusters so far.

    Returns:
        (clients,) new clusters, and one division for each cluster that has clients.
    """
    divided, divisions, free = labels.copy(), [], num_clusters
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        names, first, sizes = np.unique(groups[members], return_index=True, return_counts=True)
        parts = []
        for rank, index in enumerate(np.lexsort((first, -sizes))):
            part = int(cluster) if rank == 0 else free
            free += rank > 0
            divided[members[groups[members] == names[index]]] = part
            parts.append(part)
        divisions.append(Division(int(cluster), tuple(parts)))
    return divided, divisions


def regrouped(
    chosen: Candidate, labels: Mapping[str, int], divisions: Sequence[Division]
) -> Candidate:
    """The candidate after divisions: parts continue from the cluster that was divided.

    Args:
        chosen: the candidate in which clients stay in the clusters that they trained in.
        labels: new cluster of each client that trains.
        divisions: divisions of the round.
    """
    parents = {part: d.cluster for d in divisions for part in d.parts if part != d.cluster}
    association = chosen.association
    for _ in parents:
        association = association.with_empty_cluster()
    contribution_weights = np.zeros((len(chosen.trainings), association.num_clusters))
    for row, training in enumerate(chosen.trainings):
        contribution_weights[row, labels[training.client]] = 1.0
    return replace(
        chosen,
        association=association.updated(labels),
        contribution_weights=contribution_weights,
        origins=(
            *chosen.origins,
            *(Continue(parents[part], is_copy=True) for part in sorted(parents)),
        ),
    )
