"""Methods with posteriors: Bayesian clustered federated learning and its trackers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from bcfl.methods.settings import Move, Settings
from bcfl.policies import ClusterSize, LikelihoodAssociation
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.rounds.method import Method
from bcfl.trackers import (
    AdaptiveMultiHypothesis,
    Consensus,
    Exact,
    Greedy,
    MultiHypothesis,
    Tracker,
)
from bcfl.trackers.proposals import Birth, Death, Merge, Proposal, SplitAndFree

KNOWN_NUMBER: Mapping[Move, Proposal] = {"split": SplitAndFree()}
UNKNOWN_NUMBER: Mapping[Move, Proposal] = {
    "birth": Birth(),
    "split": SplitAndFree(splits=1),
    "death": Death(),
    "merge": Merge(),
}
"""In the order in which they are made."""
USUAL: tuple[Move, ...] = ("birth", "split", "death")
"""Those that have paid; the number of clusters being known, a split alone."""


def bcfl_with(settings: Settings, tracker: Tracker, name: str) -> Method:
    """BCFL with any tracker: association weights, Laplace posteriors, fused Gaussians."""
    temperature = "mean" if settings.temperature is None else settings.temperature
    policy = LikelihoodAssociation(
        settings.known_clusters,
        settings.laplace,
        temperature,
        solver=settings.solver,
        score_samples=settings.score_samples,
        cluster_size=ClusterSize.of(settings.cluster_size),
        prior=AssociationPrior(settings.staying),
    )
    return Method(
        policy,
        tracker,
        settings.aggregation,
        name,
        prior_precision=settings.prior_precision,
        validation=settings.validation if temperature == "auto" else 0.0,
    )


def bcfl_g(settings: Settings) -> Method:
    """BCFL-G: the best association alone."""
    return bcfl_with(settings, Greedy(), "bcfl-g")


def bcfl_forget(settings: Settings) -> Method:
    """BCFL-G whose priors forget: an answer to data that change over time.

    A cluster that nobody chooses keeps its mean while its precision fades, so that a concept that
    comes back finds the model that it left.
    """
    fading = replace(settings.aggregation, memory="forget")
    return bcfl_with(replace(settings, aggregation=fading), Greedy(), "bcfl-forget")


def bcfl_c(settings: Settings, num_associations: int) -> Method:
    """BCFL-C: the M best associations, merged after each round."""
    return bcfl_with(settings, Consensus(num_associations), f"bcfl-c-{num_associations}")


def bcfl_mh(settings: Settings, max_hypotheses: int) -> Method:
    """BCFL-MH: the M most probable histories of associations."""
    return bcfl_with(settings, MultiHypothesis(max_hypotheses), f"bcfl-mh-{max_hypotheses}")


def bcfl_mht(settings: Settings, max_hypotheses: int) -> Method:
    """BCFL-MHT: up to M hypotheses that differ, with proposals; temperature 1 by default.

    With `num_clusters="auto"` hypotheses may gain and lose clusters, starting from
    `first_clusters`, and are judged on held-out samples. `moves` says what is proposed.
    """
    name = f"bcfl-mht-{max_hypotheses}"
    temperature = 1.0 if settings.temperature is None else settings.temperature
    chosen = replace(settings, temperature=temperature)
    if settings.num_clusters != "auto":
        moves = _proposals(KNOWN_NUMBER, settings.moves)
        return bcfl_with(chosen, AdaptiveMultiHypothesis(max_hypotheses, proposals=moves), name)
    moves = _proposals(UNKNOWN_NUMBER, settings.moves)
    tracker = AdaptiveMultiHypothesis(max_hypotheses, proposals=moves)
    begun = replace(chosen, num_clusters=settings.first_clusters, moves=None)
    method = bcfl_with(begun, tracker, name)
    policy = replace(cast(LikelihoodAssociation, method.policy), judge="held_out")
    return replace(method, policy=policy, validation=settings.validation, finds_number=True)


def _proposals(
    known: Mapping[Move, Proposal], asked: Collection[Move] | None
) -> tuple[Proposal, ...]:
    """The proposals that are asked for, or the usual ones, in the order of `known`."""
    wanted = USUAL if asked is None else asked
    return tuple(proposal for move, proposal in known.items() if move in wanted)


def bcfl_exact(settings: Settings) -> Method:
    """BCFL with all associations; for tiny problems."""
    return bcfl_with(settings, Exact(), "bcfl-exact")
