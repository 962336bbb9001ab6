"""Methods that cluster clients by the similarity of their updates; one hypothesis, flat posteriors.

All start from one model. OCFL, SCL and BCL take the unweighted mean of a cluster's updates, as in
their papers; FedGroup weighs by samples after its cold start.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from bcfl.methods.registry import recipe
from bcfl.methods.training import Common, flat

if TYPE_CHECKING:
    from bcfl.policies.updates.update_clustering import UpdateClustering
    from bcfl.protocol.objective import Objective
    from bcfl.rounds.method import Method

Rule = Literal["rise", "printed"]
Reads = Literal["similarity", "distance"]
OCFL = "Zuziak et al. 2024, algorithm 1"


class OneShotOptions(Common, total=False):
    """Options of one-shot clustering."""

    norm: float
    rule: Rule
    shots: int
    shot_round: float | None


def one_shot(
    clustering: "UpdateClustering",
    *,
    norm: float = 2.0,
    rule: Rule = "rise",
    shots: int = 1,
    shot_round: float | None = None,
    **common: Unpack[Common],
) -> "Method":
    """Cluster updates once, in the first round whose clustering temperature rises.

    Args:
        clustering: how updates are clustered.
        norm: p of the norm in the clustering temperature.
        rule: whether the temperature must rise above that of the round before, as in the paper's
            tables, or as algorithm 1 is printed, which triggers in the first round.
        shots: most rounds in which clients are clustered; more than one is few-shot clustering.
            Default: Zuziak et al. 2024, section 4.
        shot_round: the round of the clustering, or its share of the run below 1, in place of the
            rise of the temperature; none waits for the rise.
    """
    from bcfl.policies.updates.clustering_temperature import AtRound, TemperatureRise, Trigger
    from bcfl.policies.updates.one_shot import OneShotClustering
    from bcfl.rounds.method import Method

    trigger: Trigger = TemperatureRise(norm, rule)
    if shot_round is not None:
        trigger = AtRound(shot_round, norm)
    policy = OneShotClustering(_unweighted(**common), clustering, trigger, shots)
    return Method(policy=policy, common_start=True)


@recipe("ocfl-hdbscan", OCFL, group=one_shot)
def ocfl_hdbscan(
    *,
    min_share: float = 0.2,
    noise: Literal["together", "nearest"] = "together",
    **options: Unpack[OneShotOptions],
) -> "Method":
    """HDBSCAN on updates at the first rise of the clustering temperature.

    Args:
        min_share: smallest share of the clients that is a cluster. Default: Zuziak et al. 2024,
            section 4.
        noise: whether clients that fit no cluster form one together, or join the nearest. Default:
            the authors' program.
    """
    from bcfl.policies.updates.update_clustering import HDBSCANClustering

    return one_shot(HDBSCANClustering(min_share, noise), **options)


@recipe("ocfl-meanshift", OCFL, group=one_shot)
def ocfl_meanshift(**options: Unpack[OneShotOptions]) -> "Method":
    """Mean shift on updates at the first rise of the clustering temperature."""
    from bcfl.policies.updates.update_clustering import MeanShiftClustering

    return one_shot(MeanShiftClustering(), **options)


@recipe("ocfl-affinity", OCFL, group=one_shot)
def ocfl_affinity(*, reads: Reads = "similarity", **options: Unpack[OneShotOptions]) -> "Method":
    """Affinity propagation on updates at the first rise of the clustering temperature.

    Args:
        reads: whether the clustering is given similarities, or distances as in the authors'
            program, which groups unlike clients.
    """
    from bcfl.policies.updates.update_clustering import AffinityClustering

    return one_shot(AffinityClustering(reads), **options)


@recipe("ocfl-kmeans", OCFL, group=one_shot)
def ocfl_kmeans(*, num_clusters: int = 4, **options: Unpack[OneShotOptions]) -> "Method":
    """K-means on updates at the first rise of the clustering temperature.

    Args:
        num_clusters: number K of clusters.
    """
    from bcfl.policies.updates.update_clustering import KMeansClustering

    return one_shot(KMeansClustering(num_clusters), **options)


@recipe("scl", "Sattler et al. 2020, algorithm 1")
def scl(
    *,
    mean_norm: float = 0.35,
    client_norm: float = 0.35,
    scale: Literal["absolute", "relative"] = "absolute",
    first_round: float = 0.4,
    min_members: int = 3,
    linkage: Literal["single", "complete"] = "single",
    **common: Unpack[Common],
) -> "Method":
    """Clusters with a small mean update are split into two.

    Args:
        mean_norm: a cluster is split only if its mean update is shorter than this. Default: Zuziak
            et al. 2024, section 4, who tried 0.2 to 0.6.
        client_norm: and only if the update of some client is longer than this. Default: as
            `mean_norm`; they tried 1.2 to 2 first.
        scale: whether these are lengths, as published, or shares of the longest update, which fit
            any model and learning rate.
        first_round: first round that may split, or its share of the run. Default: round 20 of 50,
            Zuziak et al. 2024.
        min_members: smallest cluster that may split.
        linkage: how the two parts are found: exactly, or as in the authors' program (complete).
    """
    from bcfl.policies.updates.bipartition import RecursiveBipartition
    from bcfl.rounds.method import Method

    policy = RecursiveBipartition(
        objective=_unweighted(**common),
        mean_norm=mean_norm,
        client_norm=client_norm,
        scale=scale,
        first_round=first_round,
        min_members=min_members,
        linkage=linkage,
    )
    return Method(policy=policy, common_start=True)


@recipe("bcl", "Briggs et al. 2020, algorithm 1")
def bcl(
    *,
    threshold: float = 0.4,
    clustering_round: float = 0.4,
    linkage: Literal["average", "complete", "single"] = "average",
    reads: Reads = "distance",
    **common: Unpack[Common],
) -> "Method":
    """Agglomerative clustering of updates at a fixed round.

    Args:
        threshold: clusters at this cosine distance or more stay apart. Default: the largest of the
            grid of Zuziak et al. 2024.
        clustering_round: the round, or its share of the run. Default: round 20 of 50, Zuziak et al.
            2024.
        linkage: distance of two clusters: the mean, largest or least over their clients.
        reads: whether the clustering is given distances, or similarities as in the program of OCFL,
            which merges the least alike clients.
    """
    from bcfl.policies.updates.clustering_temperature import AtRound
    from bcfl.policies.updates.one_shot import OneShotClustering
    from bcfl.policies.updates.update_clustering import AgglomerativeClustering
    from bcfl.rounds.method import Method

    clustering = AgglomerativeClustering(threshold, linkage, reads)
    policy = OneShotClustering(_unweighted(**common), clustering, AtRound(clustering_round))
    return Method(policy=policy, common_start=True)


@recipe("fedgroup", "Duan et al. 2021, algorithms 1 to 3")
def fedgroup(
    *,
    num_clusters: int = 4,
    cold_start_steps: int = 50,
    cold_start_batch_size: int = 10,
    founders: int = 20,
    dissimilarity: Literal["edc", "madc"] = "edc",
    **common: Unpack[Common],
) -> "Method":
    """K-means on decomposed cosines of a cold start.

    Args:
        num_clusters: number K of groups.
        cold_start_steps: local steps of the cold start. Default: the authors' program.
        cold_start_batch_size: samples per step there. Default: the authors' program.
        founders: most clients for each group that take part in the cold start. Default: the
            authors' program.
        dissimilarity: cosines with the main directions (edc), or mean absolute differences of
            cosines (madc).
    """
    from bcfl.policies.updates.fedgroup import FedGroup
    from bcfl.rounds.method import Method

    cold_start = replace(
        _unweighted(**common),
        local_steps=cold_start_steps,
        local_epochs=None,
        batch_size=cold_start_batch_size,
    )
    policy = FedGroup(
        groups=num_clusters,
        objective=flat(**common),
        cold_start=cold_start,
        founders=founders,
        dissimilarity=dissimilarity,
    )
    return Method(policy=policy, common_start=True)


def _unweighted(**common: Unpack[Common]) -> "Objective":
    return replace(flat(**common), curvature="uniform")
