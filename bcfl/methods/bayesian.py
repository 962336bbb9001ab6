"""Methods with posteriors: Bayesian clustered federated learning and its trackers."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from bcfl.federation import Method
from bcfl.policies import ClusterSize, LikelihoodAssociation
from bcfl.policies.association_prior import AssociationPrior
from bcfl.settings import Settings
from bcfl.trackers import (
    AdaptiveMultiHypothesis,
    Consensus,
    Exact,
    Greedy,
    MultiHypothesis,
    Tracker,
)
from bcfl.trackers.proposals import Birth, Death, Proposal, SplitAndFree

UNKNOWN_NUMBER: tuple[Proposal, ...] = (Birth(), SplitAndFree(splits=1), Death())


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

    With `num_clusters="auto"` hypotheses may gain and lose clusters, starting from one, and are
    judged on held-out samples.
    """
    name = f"bcfl-mht-{max_hypotheses}"
    temperature = 1.0 if settings.temperature is None else settings.temperature
    chosen = replace(settings, temperature=temperature)
    if settings.num_clusters != "auto":
        return bcfl_with(chosen, AdaptiveMultiHypothesis(max_hypotheses), name)
    tracker = AdaptiveMultiHypothesis(max_hypotheses, proposals=UNKNOWN_NUMBER)
    method = bcfl_with(replace(chosen, num_clusters=1), tracker, name)
    policy = replace(cast(LikelihoodAssociation, method.policy), judge="held_out")
    return replace(method, policy=policy, validation=settings.validation)


def bcfl_exact(settings: Settings) -> Method:
    """BCFL with all associations; for tiny problems."""
    return bcfl_with(settings, Exact(), "bcfl-exact")
