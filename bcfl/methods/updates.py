"""Methods that cluster clients by how alike their updates are.

| name | when | how |
|---|---|---|
| ocfl-hdbscan, -meanshift, -affinity, -kmeans | first rise of the clustering temperature | named |
| bcl | after 40 % of the rounds | average linkage, distance threshold |
| scl | from 40 % of the rounds on | recursive bipartition |
| fedgroup | first round, a cold start | K-means on decomposed cosines |

All start from one model. OCFL, SCL and BCL take the unweighted mean of a cluster's updates, as in
their papers; FedGroup weighs by samples after its cold start.
"""

from __future__ import annotations

from dataclasses import replace

from bcfl.methods.settings import Settings
from bcfl.policies import ClusterSize, Policy
from bcfl.policies.updates.bipartition import RecursiveBipartition
from bcfl.policies.updates.clustering_temperature import AtRound
from bcfl.policies.updates.fedgroup import FedGroup
from bcfl.policies.updates.one_shot import OneShotClustering
from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
    UpdateClustering,
)
from bcfl.protocol.objective import Objective
from bcfl.rounds.method import Method

FIXED_ROUND = 0.4
"""Share of the run after which BCL and SCL cluster: round 20 of 50 in the OCFL paper's runs."""


def ocfl_hdbscan(settings: Settings) -> Method:
    """OCFL with HDBSCAN, smallest cluster a fifth of the clients."""
    return _one_shot(settings, HDBSCANClustering(), "ocfl-hdbscan")


def ocfl_meanshift(settings: Settings) -> Method:
    """OCFL with mean shift."""
    return _one_shot(settings, MeanShiftClustering(), "ocfl-meanshift")


def ocfl_affinity(settings: Settings) -> Method:
    """OCFL with affinity propagation, which is given similarities."""
    return _one_shot(settings, AffinityClustering(), "ocfl-affinity")


def ocfl_kmeans(settings: Settings) -> Method:
    """OCFL with K-means, which must know K."""
    return _one_shot(settings, KMeansClustering(settings.known_clusters), "ocfl-kmeans")


def bcl(settings: Settings) -> Method:
    """BCL (Briggs et al. 2020): agglomerative clustering once, at a fixed round.

    The threshold is the largest of the grid that the OCFL paper searched.
    """
    clustering = AgglomerativeClustering(threshold=0.4)
    policy = OneShotClustering(_unweighted(settings), clustering, AtRound(FIXED_ROUND))
    return _from_one_model(settings, policy, "bcl")


def scl(settings: Settings) -> Method:
    """SCL (Sattler et al. 2020): recursive bipartition.

    Both lengths are 0.35, as in the OCFL paper, but relative ones: absolute lengths fit one model
    and learning rate alone.
    """
    policy = RecursiveBipartition(
        _unweighted(settings),
        mean_norm=0.35,
        client_norm=0.35,
        scale="relative",
        first_round=FIXED_ROUND,
    )
    return _from_one_model(settings, policy, "scl")


def fedgroup(settings: Settings) -> Method:
    """FedGroup (Duan et al. 2021): groups from a cold start of 50 steps of 10 samples."""
    cold_start = replace(_unweighted(settings), local_steps=50, batch_size=10)
    policy = FedGroup(settings.known_clusters, settings.flat, cold_start)
    return _from_one_model(settings, policy, "fedgroup")


def _one_shot(settings: Settings, clustering: UpdateClustering, name: str) -> Method:
    policy = OneShotClustering(_unweighted(settings), clustering)
    return _from_one_model(settings, policy, name)


def _unweighted(settings: Settings) -> Objective:
    return replace(settings.flat, curvature="uniform")


def _from_one_model(settings: Settings, policy: Policy, name: str) -> Method:
    if not ClusterSize.of(settings.cluster_size).free:
        raise ValueError(
            f"cluster_size must be free for {name!r}, which sets no bounds on its clusters, got "
            f"{settings.cluster_size}"
        )
    return Method(policy, name=name, common_start=True)
