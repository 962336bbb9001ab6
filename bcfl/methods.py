"""Methods by name. Each recipe is a choice of policy, tracker and aggregation.

| name | association | hypotheses | posteriors |
|---|---|---|---|
| fedavg | one cluster | 1 | flat |
| ifca | lowest loss | 1 | flat |
| fesem, wecfl | K-means on local models | 1 | flat |
| bcfl-g | log association weight | 1 | Laplace |
| bcfl-c-M | M best, merged | 1 | Laplace |
| bcfl-mh-M | M best of each hypothesis | M | Laplace |
| bcfl-mht-M | M best of each hypothesis, and proposals | at most M that differ | Laplace |
| bcfl-exact | all | all | Laplace |

A `-w` at the end of a clustered method's name adds the warm-up of the BCFL paper.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import cast

from bcfl.federation import Method
from bcfl.policies import (
    ClusterSize,
    KMeansAssociation,
    LikelihoodAssociation,
    SingleCluster,
    WarmUp,
)
from bcfl.policies.association_prior import AssociationPrior
from bcfl.settings import Settings as Settings
from bcfl.trackers import (
    AdaptiveMultiHypothesis,
    Consensus,
    Exact,
    Greedy,
    MultiHypothesis,
    Tracker,
)
from bcfl.trackers.proposals import Birth, Death, Proposal, SplitAndFree


class UnknownMethodError(ValueError):
    """A name that no recipe has."""


UNKNOWN_NUMBER: tuple[Proposal, ...] = (Birth(), SplitAndFree(splits=1), Death())


def fedavg(settings: Settings) -> Method:
    """FedAvg (McMahan et al. 2017)."""
    return Method(SingleCluster(settings.flat), name="fedavg", common_start=True)


def ifca(settings: Settings) -> Method:
    """IFCA (Ghosh et al. 2020): each client joins the cluster of lowest loss."""
    policy = LikelihoodAssociation(
        settings.known_clusters,
        settings.flat,
        score_samples=settings.score_samples,
        cluster_size=ClusterSize.of(settings.cluster_size),
    )
    return Method(policy, name="ifca")


def wecfl(settings: Settings) -> Method:
    """WeCFL (Ma et al. 2022): sample-weighted K-means on local models."""
    bounds = ClusterSize.of(settings.cluster_size)
    policy = KMeansAssociation(settings.known_clusters, settings.flat, "samples", bounds)
    return Method(policy, name="wecfl", common_start=True)


def fesem(settings: Settings) -> Method:
    """FeSEM (Long et al. 2022): K-means on local models."""
    bounds = ClusterSize.of(settings.cluster_size)
    policy = KMeansAssociation(settings.known_clusters, settings.flat, "equal", bounds)
    return Method(policy, name="fesem", common_start=True)


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


PLAIN: Mapping[str, Callable[[Settings], Method]] = {
    "fedavg": fedavg,
    "ifca": ifca,
    "fesem": fesem,
    "wecfl": wecfl,
    "bcfl-g": bcfl_g,
    "bcfl-exact": bcfl_exact,
}
NUMBERED: Mapping[str, Callable[[Settings, int], Method]] = {
    "bcfl-c": bcfl_c,
    "bcfl-mh": bcfl_mh,
    "bcfl-mht": bcfl_mht,
}
DESCRIPTIONS: Mapping[str, str] = {
    "fedavg": "one model for all clients",
    "ifca": "each client joins the cluster of lowest loss",
    "fesem": "K-means on local models",
    "wecfl": "K-means on local models, weighted by samples",
    "bcfl-g": "best association by weight, Laplace posteriors",
    "bcfl-c-M": "the M best associations, merged after each round",
    "bcfl-mh-M": "the M most probable histories of associations",
    "bcfl-mht-M": "up to M hypotheses that differ, split proposals, adaptive",
    "bcfl-exact": "all associations; tiny problems only",
}


def build(name: str, settings: Settings | None = None) -> Method:
    """The method of a name, such as `wecfl`, `bcfl-mh-6` or `bcfl-g-w`.

    Raises:
        UnknownMethodError: no recipe has the name; the message suggests the nearest.
        ValueError: the number in the name is not at least 1.
    """
    chosen = settings or Settings()
    base = name.removesuffix("-w")
    method = _recipe(base, name, chosen)
    return method if base == name else with_warm_up(method, chosen)


def _recipe(base: str, name: str, settings: Settings) -> Method:
    if base in PLAIN:
        return PLAIN[base](settings)
    numbered = re.fullmatch(r"(.+)-(\d+)", base)
    if numbered and numbered[1] in NUMBERED:
        return NUMBERED[numbered[1]](settings, int(numbered[2]))
    known = [*PLAIN, *(f"{stem}-{number}" for stem in NUMBERED for number in (3, 6))]
    near = get_close_matches(base, known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0] + name[len(base) :]!r}?" if near else ""
    raise UnknownMethodError(f"unknown method {name!r}.{hint} All: bcfl list methods")


def with_warm_up(method: Method, settings: Settings) -> Method:
    """Precede a clustered method by rounds of Euclidean K-means on local models.

    Raises:
        ValueError: the method has one cluster, so there is nothing to warm up.
    """
    if method.num_clusters == 1:
        raise ValueError(f"method {method.name!r} has one cluster: there is no warm-up for it")
    bounds = ClusterSize.of(settings.cluster_size)
    first = KMeansAssociation(method.num_clusters, method.policy.objective, "equal", bounds)
    policy = WarmUp(first, method.policy, settings.warm_up_rounds)
    return replace(method, policy=policy, name=f"{method.name}-w")
