"""BCFL-MHT: multi-hypothesis tracking with proposals, and all of its options."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from bcfl.methods.bayesian import SharedDefaults, bcfl
from bcfl.methods.choices import NUMBER_CHANGING, Memory, Move, ScoredBy, Temperature
from bcfl.methods.registry import recipe
from bcfl.runtime import check_whole

if TYPE_CHECKING:
    from bcfl.rounds.method import Method
    from bcfl.trackers.proposals import Proposal

USUAL: tuple[Move, ...] = ("birth", "split", "death")
"""Moves that have paid; the number of clusters being known, a split alone."""


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


@recipe("bcfl-mht", "this package", number="max_hypotheses", group=bcfl)
def bcfl_mht(
    *,
    num_clusters: int | Literal["auto"] = 4,
    first_clusters: int = 8,
    max_hypotheses: int = 8,
    max_per_parent: int | None = None,
    temperature: Temperature = 1.0,
    memory: Memory = "replace",
    scored_by: ScoredBy = "cluster",
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
    **options: Unpack[SharedDefaults],
) -> "Method":
    """Up to M distinct hypotheses, split proposals, adaptive.

    Args:
        num_clusters: number K of clusters; auto lets hypotheses gain and lose clusters, judged on
            held-out samples.
        first_clusters: number of clusters that auto begins with, at most one per client. Beginning
            with too many, it finds groups that a common model serves nearly as well; beginning with
            one, it often misses these. Default: measured, studies/trackers ("Number of clusters
            unknown, and misspecified").
        max_hypotheses: most hypotheses M that are kept.
        max_per_parent: associations that are ranked per hypothesis; none is M.
        temperature: of the association weights: mean weighs by the loss per sample, a number
            divides the summed loss (1 is Bayes' rule), auto fits it on validation samples. Default:
            measured, studies/trackers ("Ablation of the tracker").
        memory: what the prior of the next round retains. Default: measured, studies/calibration
            ("Memory over rounds").
        scored_by: model that scores a client in a cluster: that of the cluster, its cavity, without
            the client's last contribution, or (crossfit) one of several, trained without the
            client's fold.
        adapt: whether only the effective number of hypotheses is kept. Default: measured,
            studies/trackers ("Ablation of the tracker").
        near_copies: distance of clusters below which hypotheses are merged, as a share of the
            spread between clusters; none merges nothing. Default: measured, studies/trackers
            ("Ablation of the tracker").
        remembers_absent: whether absent clients count with their last costs.
        n_scan: rounds after which past ambiguities are resolved; none leaves them to the weights.
            Default: measured, studies/trackers ("Ablation of the tracker").
        starts: initial hypotheses, each with networks of its own. Default: measured,
            studies/trackers ("Ablation of the tracker").
        quota_rounds: rounds in which every start keeps a successor; none has no quota. Default:
            measured, studies/trackers ("Ablation of the tracker").
        moves: kinds of proposals; none is split, and with auto also birth and death. Default:
            measured, studies/trackers ("Ablation of the tracker").
        propose_every: rounds between proposals.
        splits: clusters that a proposal tries to split.
        freeing_splits: the same, with auto, for splits whose second part replaces another cluster.
        slots: slots that are tried for each part of a split cluster.
        pairs: pairs of clusters for which a merge is proposed.
        deaths: clusters for which a death is proposed.
        min_members: trained members that a cluster needs to be split.
        min_gain: gain of a split into an empty cluster, nats per dimension.
        max_cost_ratio: largest cost of the cluster that a split removes, in units of the cost of
            the split cluster.
        max_clusters: most clusters with auto.

    Raises:
        ValueError: an option needs another one, such as births `num_clusters="auto"`.
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
        max_per_parent=max_per_parent,
    )
    if finds_number and options.setdefault("judge", "held_out") != "held_out":
        raise ValueError("judge must be 'held_out' where num_clusters is 'auto', got 'training'")
    method = bcfl(
        tracker,
        num_clusters=_starting(num_clusters, first_clusters),
        temperature=temperature,
        memory=memory,
        scored_by=scored_by,
        **options,
    )
    return replace(method, starts=starts, finds_number=finds_number)


def _starting(num_clusters: int | Literal["auto"], first_clusters: int) -> int:
    """How many clusters the first hypothesis has, given enough clients."""
    check_whole("first_clusters", first_clusters)
    return first_clusters if num_clusters == "auto" else num_clusters


def _proposals(
    moves: Collection[Move] | None,
    num_clusters: int | Literal["auto"],
    **numbers: Unpack[Proposing],
) -> "tuple[Proposal, ...]":
    """The given or default proposals, in the order in which they are made."""
    from bcfl.trackers.proposals import Birth, Death, Merge, SplitAndFree

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
    }
    for move in moves or ():
        if move in NUMBER_CHANGING and not finds_number:
            raise ValueError(
                f"move {move!r} changes the number of clusters: num_clusters must be 'auto', got "
                f"{num_clusters}"
            )
    names = moves if moves is not None else USUAL if finds_number else ("split",)
    return tuple(proposal for move, proposal in known.items() if move in names)
