"""Methods with posteriors: Bayesian clustered federated learning and its trackers."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from bcfl.methods.choices import (
    BeliefTemperature,
    Curvature,
    Evidence,
    Fusion,
    LocalPosterior,
    Memory,
    ScoredBy,
    Solver,
    Temperature,
)
from bcfl.methods.registry import recipe
from bcfl.methods.training import Common, trained

if TYPE_CHECKING:
    from bcfl.rounds.method import Method
    from bcfl.trackers import Tracker

PAPER = "A Bayesian framework for clustered federated learning"


class PosteriorOptions(Common, total=False):
    """Options of all methods with posteriors."""

    curvature: Curvature
    posterior: LocalPosterior
    prior_precision: float
    decay: float
    history_weights: Memory | None
    evidence: Evidence
    evidence_draws: int
    reweighed: int
    judge: Literal["training", "held_out"]
    validation: float | None
    folds: int
    score_samples: int | None
    solver: Solver
    cluster_size: tuple[int, int | None]
    staying: float | None
    concentration: float | None


class SharedDefaults(PosteriorOptions, total=False):
    """Those whose defaults are the same in all methods but bcfl-race."""

    fusion: Fusion
    belief_temperature: BeliefTemperature


class BayesianOptions(SharedDefaults, total=False):
    """Options of the methods that differ in the tracker alone."""

    num_clusters: int
    temperature: Temperature
    memory: Memory
    scored_by: ScoredBy


def bcfl(
    tracker: "Tracker",
    *,
    num_clusters: int = 4,
    temperature: Temperature = "mean",
    evidence: Evidence = "separable",
    evidence_draws: int = 16,
    reweighed: int = 64,
    judge: Literal["training", "held_out"] = "training",
    scored_by: ScoredBy = "cluster",
    belief_temperature: BeliefTemperature = 16.0,
    folds: int = 4,
    validation: float | None = None,
    score_samples: int | None = None,
    solver: Solver = "auto",
    cluster_size: tuple[int, int | None] = (0, None),
    staying: float | None = None,
    concentration: float | None = None,
    curvature: Curvature = "ggn",
    posterior: LocalPosterior = "laplace-diag",
    prior_precision: float = 1.0,
    fusion: Fusion = "precision_weighted",
    memory: Memory = "replace",
    history_weights: Memory | None = None,
    decay: float = 0.9,
    **common: Unpack[Common],
) -> "Method":
    """Association weights, local posteriors, fused Gaussians, and any tracker.

    Args:
        tracker: which hypotheses are kept.
        num_clusters: number K of clusters.
        temperature: of the association weights: mean weighs by the loss per sample, a number
            divides the summed loss (1 is Bayes' rule), auto fits it on validation samples. Default:
            the paper, section 5.
        evidence: whether a cluster is weighed for each client at its mean (separable), or for all
            its clients together: by Laplace's approximation (joint, which needs a number as
            temperature), by models drawn from the prior that clients are sent (monte_carlo) or from
            the cluster's posterior (importance). Default: the paper, equation 9 with N = 1.
        evidence_draws: number N of models that the last two draw for each cluster.
        reweighed: number of best associations whose weights are recomputed unless the evidence is
            separable.
        judge: whether hypotheses compete by training samples or by validation samples.
        scored_by: model that scores a client in a cluster: that of the cluster, its cavity, without
            the client's last contribution, or (crossfit) one of several, trained without the
            client's fold. Default: the paper, eq. 15.
        belief_temperature: divides summed cavity losses in membership probabilities; auto fits it
            on two halves of the clients' samples. Default: measured, studies/association-posterior
            ("Association posterior").
        folds: number of folds of clients in crossfit, which multiplies the trainings.
        validation: share of the clients' training samples that is set aside; none is 0.25 where
            the judge or an automatic temperature needs them, else 0.
        score_samples: most samples that are scored per client; none scores all.
        solver: how associations are ranked.
        cluster_size: fewest and most clients of a cluster.
        staying: prior probability that a client stays in its cluster; none is uniform. Default: the
            paper, equation 11.
        concentration: concentration of the Dirichlet prior on the shares of the clusters; none has
            no prior on sizes. Default: the paper, equation 11.
        curvature: how the precision of a client's likelihood is found. Default: the
            Gauss-Newton matrix of Laplace approximations, the paper, section 5.
        posterior: how local posteriors are fitted. Default: Laplace, the paper, section 5.
        prior_precision: precision of the prior around the initial network, per parameter.
        fusion: how local posteriors are fused. Default: measured, studies/association-posterior
            ("What else was tried").
        memory: what the prior of the next round retains. Default: measured, studies/calibration
            ("Memory over rounds").
        history_weights: what the weights of hypotheses in the next round retain; none is as
            `memory`.
        decay: share that the memory forget keeps per round.
    """
    from bcfl.aggregation.aggregation import Aggregation
    from bcfl.policies import ClusterSize, LikelihoodAssociation
    from bcfl.policies.bayes.association_prior import AssociationPrior
    from bcfl.rounds.method import Method

    policy = LikelihoodAssociation(
        num_clusters=num_clusters,
        objective=replace(
            trained(common.get("objective")), curvature=curvature, posterior=posterior
        ),
        temperature=temperature,
        evidence=evidence,
        evidence_draws=evidence_draws,
        solver=solver,
        score_samples=score_samples,
        cluster_size=ClusterSize(*cluster_size),
        prior=AssociationPrior(staying, concentration),
        judge=judge,
        scored_by=scored_by,
        belief_temperature=belief_temperature,
        reweighed=reweighed,
        folds=folds,
    )
    needed = policy.temperature == "auto" or policy.judge == "held_out"
    share = _set_aside(needed, validation)
    return Method(
        policy=policy,
        tracker=tracker,
        aggregation=Aggregation(
            fusion=fusion, memory=memory, decay=decay, history_weights=history_weights
        ),
        prior_precision=prior_precision,
        validation=share,
        calibration=0.0 if needed else share,
    )


def _set_aside(needed: bool, validation: float | None) -> float:
    """The share of held-out samples, checked against what needs them."""
    if validation is None:
        return 0.25 if needed else 0.0
    if needed and not validation > 0:
        raise ValueError(
            "num_clusters 'auto', temperature 'auto' and judge 'held_out' need held-out samples: "
            f"validation must be above 0, got {validation}"
        )
    return validation


@recipe("bcfl-g", f"{PAPER}, equation 16", group=bcfl)
def bcfl_g(**options: Unpack[BayesianOptions]) -> "Method":
    """Best association by weight, Laplace posteriors."""
    from bcfl.trackers import Greedy

    return bcfl(Greedy(), **options)


@recipe("bcfl-c", f"{PAPER}, equation 17", number="num_associations", group=bcfl)
def bcfl_c(*, num_associations: int = 3, **options: Unpack[BayesianOptions]) -> "Method":
    """The M best associations, merged after each round.

    Args:
        num_associations: number M of associations.
    """
    from bcfl.trackers import Consensus

    return bcfl(Consensus(num_associations), **options)


@recipe("bcfl-mh", f"{PAPER}, equation 18", number="max_hypotheses", group=bcfl)
def bcfl_mh(
    *,
    max_hypotheses: int = 6,
    max_per_parent: int | None = None,
    min_weight: float = 0.0,
    **options: Unpack[BayesianOptions],
) -> "Method":
    """The M most probable associations over all hypotheses.

    Args:
        max_hypotheses: number M of hypotheses that are kept.
        max_per_parent: associations that are ranked per hypothesis; none is M.
        min_weight: hypotheses of lower probability are pruned, see section 4.4 of the paper.
    """
    from bcfl.trackers import MultiHypothesis

    return bcfl(MultiHypothesis(max_hypotheses, max_per_parent, min_weight), **options)


@recipe(
    "bcfl-histories",
    f"{PAPER}, equations 10, 11 and 18",
    number="max_hypotheses",
    group=bcfl,
)
def bcfl_histories(
    *,
    num_clusters: int = 4,
    max_hypotheses: int = 6,
    max_per_parent: int | None = None,
    min_weight: float = 0.001,
    temperature: Temperature = "mean",
    scored_by: ScoredBy = "cluster",
    **options: Unpack[SharedDefaults],
) -> "Method":
    """The M most probable histories: weights and precision accumulate over all rounds.

    The recursion as the paper has it. Where rounds revisit the same data, these are counted in
    every round, so that weights become sure of one history.

    Args:
        num_clusters: number K of clusters.
        max_hypotheses: number M of hypotheses that are kept.
        max_per_parent: associations that are ranked per hypothesis; none is M.
        min_weight: hypotheses of lower probability are pruned, see section 4.4 of the paper.
        temperature: of the association weights: mean weighs by the loss per sample, a number
            divides the summed loss (1 is Bayes' rule), auto fits it on validation samples. Default:
            the paper, section 5.
        scored_by: model that scores a client in a cluster: that of the cluster, its cavity, without
            the client's last contribution, or (crossfit) one of several, trained without the
            client's fold. Default: the paper, eq. 15.
    """
    from bcfl.trackers import MultiHypothesis

    return bcfl(
        MultiHypothesis(max_hypotheses, max_per_parent, min_weight),
        num_clusters=num_clusters,
        temperature=temperature,
        scored_by=scored_by,
        memory="accumulate",
        **options,
    )


@recipe("bcfl-forget", f"{PAPER}, with a prior that forgets", group=bcfl)
def bcfl_forget(
    *,
    num_clusters: int = 4,
    temperature: Temperature = "mean",
    **options: Unpack[SharedDefaults],
) -> "Method":
    """BCFL-G with priors that forget, for data that change.

    A cluster that no client chooses keeps its mean while its precision fades, so that a concept
    that comes back finds the model that it left.
    """
    from bcfl.trackers import Greedy

    return bcfl(
        Greedy(), num_clusters=num_clusters, temperature=temperature, memory="forget", **options
    )


@recipe("bcfl-asym", "this package, after FAACL", group=bcfl)
def bcfl_asymmetric(
    *,
    borrowing_temperature: float = 1.0,
    least_power: float = 0.01,
    **options: Unpack[BayesianOptions],
) -> "Method":
    """BCFL-G whose clusters borrow from clients of others, by evidence.

    Args:
        borrowing_temperature: divides the log-likelihoods that say how much is borrowed; 1 is
            Bayes.
        least_power: smallest power for which a client is trained.
    """
    from bcfl.policies.bayes.borrowing import AsymmetricBCFL
    from bcfl.trackers import Greedy

    method = bcfl(Greedy(), **options)
    policy = AsymmetricBCFL(
        method.policy, borrowing_temperature, least_power, options.get("score_samples")
    )
    return replace(method, policy=policy)


@recipe("bcfl-exact", f"{PAPER}, algorithm 1", group=bcfl)
def bcfl_exact(*, limit: int = 100_000, **options: Unpack[BayesianOptions]) -> "Method":
    """All associations, for tiny problems only.

    Args:
        limit: most hypotheses; a run that would have more is refused.
    """
    from bcfl.trackers import Exact

    # the weights of all associations are the posterior; a belief given each would blur it
    return replace(bcfl(Exact(limit), **options), belief_temperature=None)
