"""Methods with posteriors: Bayesian clustered federated learning and its trackers."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from bcfl.methods.choices import (
    NUMBER_CHANGING,
    Curvature,
    Fusion,
    LocalPosterior,
    Memory,
    Move,
    Solver,
    Temperature,
)
from bcfl.methods.registry import recipe
from bcfl.methods.training import Common, trained

if TYPE_CHECKING:
    from bcfl.policies.bayes.likelihood import LikelihoodAssociation
    from bcfl.rounds.method import Method
    from bcfl.trackers import Tracker
    from bcfl.trackers.proposals import Proposal

PAPER = "A Bayesian framework for clustered federated learning"
USUAL: tuple[Move, ...] = ("birth", "split", "death")
"""Moves that have paid; the number of clusters being known, a split alone."""


class PosteriorOptions(Common, total=False):
    """Options of all methods with posteriors."""

    curvature: Curvature
    posterior: LocalPosterior
    prior_precision: float
    fusion: Fusion
    decay: float
    evidence: Literal["separable", "joint"]
    reweighed: int
    judge: Literal["training", "held_out"]
    validation: float | None
    score_samples: int | None
    solver: Solver
    cluster_size: tuple[int, int | None]
    staying: float | None
    concentration: float | None


class BayesianOptions(PosteriorOptions, total=False):
    """Options of the methods that are no more than a tracker."""

    num_clusters: int
    temperature: Temperature
    memory: Memory


def bcfl(
    tracker: "Tracker",
    *,
    num_clusters: int = 4,
    temperature: Temperature = "mean",
    evidence: Literal["separable", "joint"] = "separable",
    reweighed: int = 64,
    judge: Literal["training", "held_out"] = "training",
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
    decay: float = 0.9,
    **common: Unpack[Common],
) -> "Method":
    """Association weights, local posteriors, fused Gaussians, and any tracker.

    Args:
        tracker: which hypotheses are kept.
        num_clusters: number K of clusters.
        temperature: of the association weights: mean weighs by the loss per sample, a number
            divides the summed loss (1 is Bayes), auto fits it on validation samples. Default: the
            paper, section 5.
        evidence: whether clients weigh clusters one by one, or all clients of a cluster together,
            which needs a number as temperature. Default: the paper, equation 9.
        reweighed: how many of the best associations are weighed again with joint evidence.
        judge: whether hypotheses compete by training samples or by validation samples.
        validation: share of the clients' training samples that is set aside; none is 0.25 where
            the judge or an automatic temperature needs them, else 0.
        score_samples: most samples that are scored per client; none scores all.
        solver: how associations are ranked.
        cluster_size: fewest and most clients of a cluster.
        staying: prior probability that a client stays in its cluster; none is uniform. Default: the
            paper, equation 11.
        concentration: of the Dirichlet prior on the shares of the clusters; none knows no sizes.
            Default: the paper, equation 11.
        curvature: how the precision of a client's likelihood is found. Default: the paper, section
            3.2, with the Gauss-Newton matrix.
        posterior: how local posteriors are fitted. Default: the paper, section 3.2.
        prior_precision: of the prior around the initial network, per parameter.
        fusion: how local posteriors are fused. Default: measured.
        memory: what the next round's prior remembers. Default: measured.
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
        solver=solver,
        score_samples=score_samples,
        cluster_size=ClusterSize(*cluster_size),
        prior=AssociationPrior(staying, concentration),
        judge=judge,
        reweighed=reweighed,
    )
    return Method(
        policy,
        tracker,
        Aggregation(fusion, memory, decay),
        prior_precision=prior_precision,
        validation=_set_aside(policy, validation),
    )


def _set_aside(policy: "LikelihoodAssociation", validation: float | None) -> float:
    """The share of held-out samples, checked against what needs them."""
    needed = policy.temperature == "auto" or policy.judge == "held_out"
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
    candidates_per_parent: int | None = None,
    **options: Unpack[BayesianOptions],
) -> "Method":
    """The M most probable histories of associations.

    Args:
        max_hypotheses: number M of hypotheses that are kept.
        candidates_per_parent: associations that are looked at for each hypothesis; none is M.
    """
    from bcfl.trackers import MultiHypothesis

    return bcfl(MultiHypothesis(max_hypotheses, candidates_per_parent), **options)


class Proposing(TypedDict, total=False):
    """Numbers of the moves that bcfl-mht proposes."""

    propose_every: int
    splits: int
    freeing_splits: int
    slots: int
    pairs: int
    deaths: int
    min_members: int
    min_gain: float
    max_cost_ratio: float
    max_clusters: int


@recipe("bcfl-mht", "ours", number="max_hypotheses", group=bcfl)
def bcfl_mht(
    *,
    num_clusters: int | Literal["auto"] = 4,
    first_clusters: int = 8,
    max_hypotheses: int = 8,
    candidates_per_parent: int | None = None,
    temperature: Temperature = 1.0,
    memory: Memory = "replace",
    adapt: bool = True,
    near_copies: float | None = 0.05,
    remembers_absent: bool = True,
    n_scan: int | None = None,
    starts: int = 1,
    quota_rounds: int | None = None,
    moves: tuple[Move, ...] | None = None,
    propose_every: int = 2,
    splits: int = 2,
    freeing_splits: int = 1,
    slots: int = 2,
    pairs: int = 2,
    deaths: int = 1,
    min_members: int = 4,
    min_gain: float = 3.0,
    max_cost_ratio: float = 2.0,
    max_clusters: int = 16,
    **options: Unpack[PosteriorOptions],
) -> "Method":
    """Up to M hypotheses that differ, split proposals, adaptive.

    Args:
        num_clusters: number K of clusters; auto lets hypotheses gain and lose clusters, judged on
            held-out samples.
        first_clusters: how many clusters auto begins with, at most one per client. From more than
            there are it finds groups that a common model serves nearly as well; from one it often
            misses those. Default: measured.
        max_hypotheses: most hypotheses M that are kept.
        candidates_per_parent: associations that are looked at for each hypothesis; none is M.
        temperature: as in the other methods, but as Bayes has it. Default: measured.
        memory: what the next round's prior remembers. Default: measured.
        adapt: whether only as many are kept as the weights say there are. Default: measured.
        near_copies: distance of clusters below which hypotheses are merged, as a share of the
            spread between clusters; none merges nothing. Default: measured.
        remembers_absent: whether absent clients count with what they last said.
        n_scan: rounds after which past ambiguities are decided; none leaves them to the weights.
            Default: measured.
        starts: initial hypotheses, each with networks of its own. Default: measured.
        quota_rounds: rounds in which every start keeps a successor; none has no quota. Default:
            measured.
        moves: what is proposed; none is split, and with auto also birth and death. Default:
            measured.
        propose_every: rounds between proposals.
        splits: clusters that a proposal tries to split.
        freeing_splits: the same, with auto, for splits whose second half takes another's place.
        slots: places that are tried for each half.
        pairs: pairs of clusters that are tried for a merge.
        deaths: clusters that are tried for a death.
        min_members: trained members that a cluster needs to be split.
        min_gain: gain of a split into an empty cluster, nats per dimension.
        max_cost_ratio: cost of freeing a cluster that a split may have, in units of the split
            cluster's cost.
        max_clusters: most clusters with auto.
    """
    from bcfl.trackers import AdaptiveMultiHypothesis
    from bcfl.trackers.near_copies import NearCopies
    from bcfl.trackers.survival import AncestorQuota, NScan

    finds_number = num_clusters == "auto"
    proposals = _proposals(
        moves,
        num_clusters,
        propose_every=propose_every,
        splits=splits,
        freeing_splits=freeing_splits if finds_number else splits,
        slots=slots,
        pairs=pairs,
        deaths=deaths,
        min_members=min_members,
        min_gain=min_gain,
        max_cost_ratio=max_cost_ratio,
        max_clusters=max_clusters,
    )
    tracker = AdaptiveMultiHypothesis(
        max_hypotheses=max_hypotheses,
        adapt=adapt,
        near_copies=None if near_copies is None else NearCopies(near_copies),
        proposals=proposals,
        quota=None if quota_rounds is None else AncestorQuota(quota_rounds),
        n_scan=None if n_scan is None else NScan(n_scan),
        remembers=remembers_absent,
        max_candidates=candidates_per_parent,
    )
    if first_clusters < 1:
        raise ValueError(f"first_clusters must be at least 1, got {first_clusters}")
    if finds_number:
        options["judge"] = "held_out"
    method = bcfl(
        tracker,
        num_clusters=first_clusters if num_clusters == "auto" else num_clusters,
        temperature=temperature,
        memory=memory,
        **options,
    )
    return replace(method, starts=starts, finds_number=finds_number)


def _proposals(
    moves: Collection[Move] | None,
    num_clusters: int | Literal["auto"],
    **numbers: Unpack[Proposing],
) -> "tuple[Proposal, ...]":
    """The proposals that are asked for, or the usual ones, in the order in which they are made."""
    from bcfl.trackers.proposals import Birth, Death, Merge, SplitAndFree, Swap

    finds_number = num_clusters == "auto"
    every, members = numbers["propose_every"], numbers["min_members"]
    known: Mapping[Move, Proposal] = {
        "birth": Birth(every, numbers["splits"], members, numbers["max_clusters"]),
        "split": SplitAndFree(
            every=every,
            splits=numbers["freeing_splits"],
            slots=numbers["slots"],
            min_members=members,
            min_gain=numbers["min_gain"],
            max_cost_ratio=numbers["max_cost_ratio"],
        ),
        "death": Death(every, numbers["deaths"]),
        "merge": Merge(every, numbers["pairs"]),
        "swap": Swap(every, members),
    }
    for move in moves or ():
        if move in NUMBER_CHANGING and not finds_number:
            raise ValueError(
                f"move {move!r} changes the number of clusters: num_clusters must be 'auto', got "
                f"{num_clusters}"
            )
    wanted = moves if moves is not None else USUAL if finds_number else ("split",)
    return tuple(proposal for move, proposal in known.items() if move in wanted)


@recipe("bcfl-forget", f"{PAPER}, with a memory that fades", group=bcfl)
def bcfl_forget(
    *,
    num_clusters: int = 4,
    temperature: Temperature = "mean",
    **options: Unpack[PosteriorOptions],
) -> "Method":
    """BCFL-G with priors that fade, for data that change.

    A cluster that no client chooses keeps its mean while its precision fades, so that a concept
    that comes back finds the model that it left.
    """
    from bcfl.trackers import Greedy

    return bcfl(
        Greedy(), num_clusters=num_clusters, temperature=temperature, memory="forget", **options
    )


@recipe("bcfl-asym", "ours, after FAACL", group=bcfl)
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
        least_power: powers below this are not worth a training.
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
    """All associations; tiny problems only.

    Args:
        limit: most hypotheses; a run that would have more is refused.
    """
    from bcfl.trackers import Exact

    return bcfl(Exact(limit), **options)
