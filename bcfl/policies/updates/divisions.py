"""Clusters that were divided, and where clients go that were not there.

A client that takes no part in the round of a division is placed when it first comes back: it trains
once from the model that was divided, and joins the part whose mean update its own update resembles
most. With several divisions it goes down the tree, as in section V of Sattler, Müller and Samek
(2020). What is needed for this is kept until every client has its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.hypotheses.association import UNSEEN, Association
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
    """All divisions that somebody still has to catch up with.

    Attributes:
        made: the divisions, first one first.
        waiting: for clients that were seen before but missed a division, the position of the first
            that they missed. Clients never seen have missed all.
        models: of each division, the model that was divided, and those of the parts after the round
            of the division.
    """

    made: tuple[Division, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, Posterior] = field(default_factory=dict)

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Divisions:
        """Those that a hypothesis remembers; the parts of the last round's are now known."""
        state = hypothesis.state
        made = tuple(Division(one, tuple(parts)) for one, parts in state.get("divisions", []))
        models = dict(hypothesis.carried_models)
        for position, division in enumerate(made):
            for part in division.parts:
                models.setdefault(f"{position} part {part}", hypothesis.clusters[part])
        return cls(made, dict(state.get("waiting", {})), models)

    def remembered(self, chosen: Candidate, state: Mapping[str, Any]) -> Candidate:
        """A candidate that carries the divisions on, if somebody still needs them.

        Args:
            chosen: the candidate.
            state: what else the policy carries.
        """
        everybody_seen = bool((chosen.association.labels != UNSEEN).all())
        if everybody_seen and not self.waiting:
            return replace(chosen, state=dict(state), carried_models={})
        made = [[division.cluster, list(division.parts)] for division in self.made]
        carried = {"divisions": made, "waiting": dict(self.waiting)} if made else {}
        return replace(chosen, state={**state, **carried}, carried_models=self.models)

    def extended(
        self, hypothesis: Hypothesis, made: Sequence[Division], present: Mapping[str, int]
    ) -> Divisions:
        """With the divisions of a round.

        Args:
            hypothesis: from before the round.
            made: the divisions; one whose cluster has one part is none.
            present: clients that took part in the round.
        """
        waiting, models = dict(self.waiting), dict(self.models)
        real = [division for division in made if len(division.parts) > 1]
        for position, division in enumerate(real, start=len(self.made)):
            models[f"{position} divided"] = hypothesis.clusters[division.cluster]
            for client, label in _labels(hypothesis.association).items():
                if label == division.cluster and client not in present:
                    waiting.setdefault(client, position)
        return Divisions((*self.made, *real), waiting, models)

    def place(
        self, hypothesis: Hypothesis, context: RoundContext, objective: Objective
    ) -> Steps[tuple[Divisions, dict[str, int]]]:
        """Let participants catch up.

        Args:
            hypothesis: from before the round.
            context: the round.
            objective: how clients train from the models that were divided.

        Returns:
            The divisions with fewer clients waiting, and the cluster of each participant; one that
            gave no answer has none.
        """
        largest = int(hypothesis.association.sizes.argmax())
        root = self.made[0].cluster if self.made else largest
        known = _labels(hypothesis.association)
        places = {client: known.get(client, root) for client in context.participants}
        missed = {c: self.waiting.get(c, len(self.made)) if c in known else 0 for c in places}
        for position, division in enumerate(self.made):
            moving = [
                c for c, at in places.items() if at == division.cluster and missed[c] <= position
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
                    del places[training.client]
                    continue
                nearest = nearest_part(context.model, start, replies[training].mean, parts)
                places[training.client] = division.parts[nearest]
        waiting = {client: at for client, at in self.waiting.items() if client not in places}
        return replace(self, waiting=waiting), places


def nearest_part(
    model: Model, start: Posterior, trained: Tensor, parts: Sequence[Posterior]
) -> int:
    """Which part a client resembles most, by the cosine of its update and the parts' updates.

    Args:
        model: the architecture.
        start: model that all trained from.
        trained: (parameters,) where the client ended.
        parts: models of the parts after the round in which they came to be.
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
        groups: (clients,) group of each client, any numbers; only who shares a group within a
            cluster counts.
        num_clusters: clusters so far.

    Returns:
        (clients,) new clusters, and one division for each cluster that has clients.
    """
    divided, made, free = labels.copy(), [], num_clusters
    for cluster in np.unique(labels):
        inside = np.flatnonzero(labels == cluster)
        names, first, sizes = np.unique(groups[inside], return_index=True, return_counts=True)
        parts = []
        for place, index in enumerate(np.lexsort((first, -sizes))):
            part = int(cluster) if place == 0 else free
            free += place > 0
            divided[inside[groups[inside] == names[index]]] = part
            parts.append(part)
        made.append(Division(int(cluster), tuple(parts)))
    return divided, made


def regrouped(chosen: Candidate, labels: Mapping[str, int], made: Sequence[Division]) -> Candidate:
    """The candidate after divisions: parts continue from the cluster that was divided.

    Args:
        chosen: the candidate in which clients stay where they trained.
        labels: new cluster of each client that trains.
        made: the divisions.
    """
    parents = {part: one.cluster for one in made for part in one.parts if part != one.cluster}
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
        origins=(*chosen.origins, *(Continue(parents[part]) for part in sorted(parents))),
    )


def _labels(association: Association) -> dict[str, int]:
    """Cluster of each client that was seen."""
    pairs = zip(association.clients, map(int, association.labels), strict=True)
    return {client: label for client, label in pairs if label != UNSEEN}
