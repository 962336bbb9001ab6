"""Ensembles of policies that run side by side, such as FedAvg and IFCA (Ma 2023, section 7.4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Given, Policy, Ranking, Validates
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps, together


@dataclass(frozen=True)
class SideBySide:
    """Policies with clusters of their own, each trained as if it were alone.

    A client is served by one cluster of each policy, with equal weights (equation 7.36). Labels of
    the association are those of the last policy.

    Attributes:
        policies: at least two, each of which follows one hypothesis.
    """

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if len(self.policies) < 2:
            raise ValueError(f"policies must be at least two, got {len(self.policies)}")

    @property
    def num_clusters(self) -> int:
        """Number of clusters of all policies together."""
        return sum(policy.num_clusters for policy in self.policies)

    @property
    def objective(self) -> Objective:
        """How the clients train by the first policy."""
        return self.policies[0].objective

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check the requirements of all policies. See `bcfl.policies.policy.Validates.check`."""
        del num_clusters
        for policy in self.policies:
            if isinstance(policy, Validates):
                policy.check(policy.num_clusters, num_clients, num_participants)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate by each policy. See `bcfl.policies.Policy.associate`."""
        parts = self._parts(hypothesis)
        pairs = zip(self.policies, parts, strict=True)
        rankings = yield from together([policy.associate(part, context) for policy, part in pairs])
        chosen = [ranking.first for ranking in rankings]
        facts = {name: value for ranking in rankings for name, value in ranking.facts.items()}
        return replace(Ranking.only(self._joined(hypothesis, parts, chosen)), facts=facts)

    def _parts(self, hypothesis: Hypothesis) -> list[Hypothesis]:
        """The hypothesis of each policy, with its clusters, association and state."""
        clients = hypothesis.association.clients
        unseen = [UNSEEN] * len(clients)
        states: Sequence[dict[str, Any]] = hypothesis.state.get("parts") or [
            {"clusters": policy.num_clusters, "labels": unseen, "state": {}}
            for policy in self.policies
        ]
        parts, first = [], 0
        for number, part in enumerate(states):
            count, prefix = part["clusters"], f"{number}: "
            labels = np.array(part["labels"], dtype=np.int64)
            carried = {
                name.removeprefix(prefix): model
                for name, model in hypothesis.carried_models.items()
                if name.startswith(prefix)
            }
            parts.append(
                Hypothesis(
                    clusters=hypothesis.clusters[first : first + count],
                    association=Association(clients, labels, count),
                    state=part["state"],
                    carried_models=carried,
                )
            )
            first += count
        return parts

    def _joined(
        self, hypothesis: Hypothesis, parts: Sequence[Hypothesis], chosen: Sequence[Candidate]
    ) -> Candidate:
        """The candidates of all policies as one."""
        ends = np.cumsum([0, *(len(part.clusters) for part in parts)]).tolist()
        origins = tuple(
            replace(origin, index=origin.index + first)
            if isinstance(origin, Continue | Given) and origin.index is not None
            else origin
            for first, one in zip(ends, chosen, strict=False)
            for origin in one.origins
        )
        return Candidate(
            association=_served_by_each([one.association for one in chosen]),
            trainings=tuple(training for one in chosen for training in one.trainings),
            contribution_weights=scipy.linalg.block_diag(
                *(one.contribution_weights for one in chosen)
            ),
            origins=origins,
            answers={request: reply for one in chosen for request, reply in one.answers.items()},
            state={
                **hypothesis.state,
                "parts": [
                    {
                        "clusters": len(one.origins),
                        "labels": one.association.labels.tolist(),
                        "state": dict(one.state),
                    }
                    for one in chosen
                ],
            },
            models=tuple(model for one in chosen for model in one.models),
            carried_models={
                f"{number}: {name}": model
                for number, one in enumerate(chosen)
                for name, model in one.carried_models.items()
            },
        )


def _served_by_each(associations: Sequence[Association]) -> Association:
    """The association by which one cluster of each of some associations serves each client."""
    serving = np.hstack([one.serving for one in associations]) / len(associations)
    last, labels = associations[-1], associations[-1].labels
    first = serving.shape[1] - last.num_clusters
    labels = np.where(labels == UNSEEN, UNSEEN, labels + first)
    known = labels != UNSEEN
    return Association(last.clients, labels, serving.shape[1], np.where(known[:, None], serving, 0))
