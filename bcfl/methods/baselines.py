"""Methods without clusters, and methods by loss or distance: flat posteriors, one hypothesis."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from bcfl.methods.choices import BeliefTemperature, Layers, MeasuredBy, ScoredBy, Solver
from bcfl.methods.registry import recipe
from bcfl.methods.training import Common, flat, with_regularizers

if TYPE_CHECKING:
    from bcfl.rounds.method import Method

Bounds = tuple[int, int | None]
Weighting = Literal["samples", "equal"]


@recipe("fedavg", "McMahan et al. 2017, algorithm 1")
def fedavg(**common: Unpack[Common]) -> "Method":
    """One model for all clients."""
    from bcfl.policies import FedAvg
    from bcfl.rounds.method import Method

    return Method(policy=FedAvg(flat(**common)), common_start=True)


@recipe("fedprox", "Li et al. 2020, algorithm 2")
def fedprox(*, proximal: float = 0.95, **common: Unpack[Common]) -> "Method":
    """FedAvg with a proximal term.

    Args:
        proximal: rho, weight of the squared distance from the common model. Default: Ma 2023,
            section 3.5.
    """
    from bcfl.policies import FedAvg
    from bcfl.protocol.regularizers import Proximal
    from bcfl.rounds.method import Method

    objective = with_regularizers(flat(**common), Proximal(proximal))
    return Method(policy=FedAvg(objective), common_start=True)


@recipe("local", "")
def local(**common: Unpack[Common]) -> "Method":
    """Every client trains alone."""
    from bcfl.policies.baselines.local_training import LocalTraining
    from bcfl.rounds.method import Method

    return Method(policy=LocalTraining(flat(**common)), common_start=True)


@recipe("centralised", "")
def centralised(**common: Unpack[Common]) -> "Method":
    """All samples pooled: an upper bound, not a federation."""
    from bcfl.policies.baselines.centralised import Centralised
    from bcfl.rounds.method import Method

    return Method(policy=Centralised(flat(**common)), common_start=True)


@recipe(
    "centralised-groups", "Asymmetric clustering in federated continual learning, tables 3.2 to 3.6"
)
def centralised_groups(**common: Unpack[Common]) -> "Method":
    """All samples of each true group pooled: an upper bound, not a federation.

    Clients without a group are one more; at least one client must have one.
    """
    from bcfl.policies.baselines.centralised import Centralised
    from bcfl.rounds.method import Method

    return Method(policy=Centralised(flat(**common), by_group=True), common_start=True)


@recipe("fedavg-plus", "Ma et al. 2023, section 5.1")
def fedavg_plus(*, num_clusters: int = 4, **common: Unpack[Common]) -> "Method":
    """K independent FedAvg models, logits averaged.

    Args:
        num_clusters: number K of models.
    """
    from bcfl.policies.baselines.ensemble import Ensemble
    from bcfl.rounds.method import Method

    return Method(
        policy=Ensemble(num_clusters, flat(**common)), pooling="logits", belief_temperature=None
    )


@recipe("fedprox-plus", "Ma et al. 2023, section 5.1")
def fedprox_plus(
    *, num_clusters: int = 4, proximal: float = 0.95, **common: Unpack[Common]
) -> "Method":
    """K independent FedProx models, logits averaged.

    Args:
        num_clusters: number K of models.
        proximal: rho, weight of the squared distance from the model that a client starts from.
            Default: Ma 2023, section 3.5.
    """
    from bcfl.policies.baselines.ensemble import Ensemble
    from bcfl.protocol.regularizers import Proximal
    from bcfl.rounds.method import Method

    objective = with_regularizers(flat(**common), Proximal(proximal))
    return Method(
        policy=Ensemble(num_clusters, objective), pooling="logits", belief_temperature=None
    )


@recipe("ifca", "Ghosh et al. 2020, algorithm 1; Mansour et al. 2020 (HypCluster)")
def ifca(
    *,
    num_clusters: int = 4,
    score_samples: int | None = None,
    cluster_size: Bounds = (0, None),
    solver: Solver = "auto",
    scored_by: ScoredBy = "cluster",
    belief_temperature: BeliefTemperature = 16.0,
    folds: int = 4,
    **common: Unpack[Common],
) -> "Method":
    """Each client joins the cluster of lowest loss.

    Args:
        num_clusters: number K of clusters.
        score_samples: most samples that are scored per client; none scores all.
        cluster_size: fewest and most clients of a cluster.
        solver: how the best association is found.
        scored_by: model that scores a client in a cluster: that of the cluster, its cavity, without
            the client's last contribution, or (crossfit) one of several, trained without the
            client's fold.
        belief_temperature: divides summed cavity losses in membership probabilities; auto fits it
            on two halves of the clients' samples. Default: measured, studies/association-posterior
            ("Association posterior").
        folds: number of folds of clients in crossfit, which multiplies the trainings.
    """
    from bcfl.policies import ClusterSize, LikelihoodAssociation
    from bcfl.rounds.method import Method

    policy = LikelihoodAssociation(
        num_clusters=num_clusters,
        objective=flat(**common),
        scored_by=scored_by,
        belief_temperature=belief_temperature,
        folds=folds,
        solver=solver,
        score_samples=score_samples,
        cluster_size=ClusterSize(*cluster_size),
    )
    return Method(policy=policy)


class KMeansOptions(Common, total=False):
    """Options of methods that cluster local models by K-means."""

    num_clusters: int
    cluster_size: Bounds
    clustered_layers: Layers
    clustering_rounds: int | None
    starts: int
    scored_by: MeasuredBy


def kmeans(
    weighting: Weighting,
    *,
    averaging: Weighting = "samples",
    num_clusters: int = 4,
    cluster_size: Bounds = (0, None),
    clustered_layers: Layers = "all",
    clustering_rounds: int | None = None,
    starts: int = 10,
    scored_by: MeasuredBy = "cluster",
    **common: Unpack[Common],
) -> "Method":
    """K-means on local models.

    Args:
        weighting: whether clients count by their samples in K-means.
        averaging: whether they do in the clusters' models.
        num_clusters: number K of clusters.
        cluster_size: fewest and most clients of a cluster.
        clustered_layers: layers whose distance counts; the thesis of WeCFL takes the classifier.
        clustering_rounds: number of rounds in which clients are clustered; none is no limit. The
            thesis of WeCFL has 10.
        starts: restarts of K-means within a round, of which the best counts. Default: scikit-learn.
        scored_by: what a client is compared with in its own cluster: the centroid, or its cavity,
            the centroid without the client. There is no cross-fitting: local models of different
            folds start from different models, so that distances would separate the folds.
    """
    from bcfl.architecture.layout import Part
    from bcfl.policies import ClusterSize, KMeansAssociation, Policy
    from bcfl.policies.wrappers.frozen import Frozen
    from bcfl.rounds.method import Method

    curvature: Literal["samples", "uniform"] = "uniform" if averaging == "equal" else "samples"
    policy: Policy = KMeansAssociation(
        num_clusters=num_clusters,
        objective=replace(flat(**common), curvature=curvature),
        weighting=weighting,
        cluster_size=ClusterSize(*cluster_size),
        part=Part(layers=clustered_layers),
        starts=starts,
        scored_by=scored_by,
    )
    if clustering_rounds is not None:
        policy = Frozen(policy, clustering_rounds)
    return Method(policy=policy, common_start=True)


@recipe("fesem", "Long et al. 2022, algorithm 1", group=kmeans)
def fesem(*, averaging: Weighting = "equal", **options: Unpack[KMeansOptions]) -> "Method":
    """K-means on local models.

    Args:
        averaging: whether clients have equal weights in the model of their cluster, so that it is
            the centroid of K-means (Ma 2023, equation 3.2), or weights by their samples as in the
            authors' program.
    """
    return kmeans("equal", averaging=averaging, **options)


@recipe("wecfl", "Ma et al. 2022, algorithm 1", group=kmeans)
def wecfl(**options: Unpack[KMeansOptions]) -> "Method":
    """K-means on local models, weighted by samples."""
    return kmeans("samples", **options)
