"""Training requests, with the models that the regularisers of their objective refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Train


@dataclass(frozen=True, eq=False)
class Work:
    """Training requests.

    Attributes:
        requests: one for each client.
        models: models that they refer to and that are no clusters of the hypothesis.
    """

    requests: tuple[Train, ...]
    models: tuple[Posterior, ...] = ()


def trainings(
    hypothesis: Hypothesis,
    starts: Mapping[str, str],
    objective: Objective,
    num_samples: Mapping[str, int] | None = None,
) -> Work:
    """Training requests, with the models that the objective's regularisers refer to.

    Args:
        hypothesis: whose clusters the regularisers refer to.
        starts: key of the model that each client trains from.
        objective: local objective.
        num_samples: training samples of the clients; one that is not listed counts as one sample.
    """
    if not objective.regularizers:
        return Work(tuple(Train(client, start, objective) for client, start in starts.items()))
    shares = cluster_shares(hypothesis.association, num_samples or {})
    clusters = {posterior.key for posterior in hypothesis.clusters}
    models: dict[str, Posterior] = {}
    references: dict[str, tuple[tuple[str, ...], ...]] = {}
    for start in dict.fromkeys(starts.values()):
        needed = [
            term.references(hypothesis.clusters, shares, start) for term in objective.regularizers
        ]
        models |= {p.key: p for posteriors in needed for p in posteriors if p.key not in clusters}
        references[start] = tuple(tuple(p.key for p in posteriors) for posteriors in needed)
    requests = (
        Train(client, start, objective, references[start]) for client, start in starts.items()
    )
    return Work(tuple(requests), tuple(models.values()))


def cluster_shares(association: Association, num_samples: Mapping[str, int]) -> list[float]:
    """Share of the samples that each cluster serves; equal shares before any client is served.

    Args:
        association: serving cluster of each client.
        num_samples: training samples; a client that is not listed counts as one sample.
    """
    counts = np.array([num_samples.get(client, 1) for client in association.clients], dtype=float)
    mass = counts @ association.serving
    if mass.sum() == 0:
        mass = np.ones(association.num_clusters)
    return [float(share) for share in mass / mass.sum()]
