"""What the suffixes of a method's name do: each makes one method of another.

| suffix | adds | paper |
|---|---|---|
| con-para | contrast between the cluster models' parameters | Ma 2024, equation 4.3 |
| con-rep | contrast between their outputs | equation 4.4 |
| cks | knowledge sharing: a pull towards the mean model | equations 5.5, 5.6 |
| con-cks | con-para on the classifier, cks on the rest | equation 6.1 |
| cam | a network for everybody beside that of the cluster | Ma et al. 2023 |
| w | rounds of K-means on local models first | BCFL, section 5 |
| finetune | clients train on before they are tested | Ma et al. 2023, section 5 |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from bcfl.architecture.additive import OWN, SHARED, additive
from bcfl.architecture.layout import BODY, CLASSIFIER
from bcfl.methods.settings import Settings
from bcfl.policies import ClusterSize, KMeansAssociation, Policy, WarmUp
from bcfl.policies.wrappers.partial import Partial
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.policies.wrappers.shared_first import SharedFirst
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Contrast, Proximal, Regularizer, Sharing
from bcfl.rounds.method import Method

UPDATES: Mapping[str, Mapping[str, Any]] = {
    "simultaneous": {"phases": ((OWN,), (SHARED,)), "against": "start"},
    "alternating": {"phases": ((OWN,), (SHARED,)), "against": "updated"},
    "joint": {"phases": ((OWN, SHARED),), "against": "start"},
}


def with_contrast_of_parameters(method: Method, settings: Settings) -> Method:
    """CFL-CON-para: local models are told apart from the other clusters' models."""
    _needs_clusters(method, "con-para")
    term = Contrast(settings.contrast, settings.contrast_temperature, part=CLASSIFIER)
    return _with_terms(method, (term,), settings.contrast_warm_up)


def with_contrast_of_outputs(method: Method, settings: Settings) -> Method:
    """CFL-CON-rep: outputs are told apart from those of the other clusters' models."""
    _needs_clusters(method, "con-rep")
    term = Contrast(settings.contrast, settings.contrast_temperature, "outputs")
    return _with_terms(method, (term,), settings.contrast_warm_up)


def with_sharing(method: Method, settings: Settings) -> Method:
    """CFL-CKS: all but the classifier is pulled towards the mean of all clusters."""
    _needs_clusters(method, "cks")
    return _with_terms(method, (Sharing(settings.sharing, BODY),), 1)


def with_contrast_and_sharing(method: Method, settings: Settings) -> Method:
    """CON&CKS: contrast of the classifiers, sharing of the rest."""
    _needs_clusters(method, "con-cks")
    shared = with_sharing(method, settings)
    return with_contrast_of_parameters(shared, settings)


def with_additive_model(method: Method, settings: Settings) -> Method:
    """CAM: logits are the sum of those of a shared network and of the cluster's own.

    The own network is trained first and the shared one against it, unless the settings say
    otherwise: the paper's simultaneous update overshoots at usual learning rates. K-means sees the
    clusters' own networks, which are pulled towards their centroids (equation 12).

    Raises:
        ValueError: the method has one cluster.
    """
    _needs_clusters(method, "cam")

    def divided(policy: Any) -> Policy:  # noqa: ANN401 - any policy with an objective
        objective = replace(
            policy.objective,
            **UPDATES[settings.additive_update],
            regularizers=_inside(policy.objective),
        )
        if isinstance(policy, KMeansAssociation):
            pull = Proximal(settings.additive_pull, replace(policy.part, block=OWN))
            objective = replace(objective, regularizers=(*objective.regularizers, pull))
            policy = replace(policy, part=replace(policy.part, block=OWN))
        return cast(Policy, replace(policy, objective=objective))

    policy = _innermost(method.policy, divided)
    alone: Objective = replace(policy.objective, phases=((SHARED,),), regularizers=())
    first = SharedFirst(method.num_clusters, alone, OWN)
    if settings.additive_aggregation == "partial":
        policy = Partial(policy)
    warm = WarmUp(first, policy, settings.additive_warm_up)
    return replace(method, policy=warm, architecture=additive)


def with_warm_up(method: Method, settings: Settings) -> Method:
    """Precede a clustered method by rounds of Euclidean K-means on local models.

    Raises:
        ValueError: the method has one cluster, so there is nothing to warm up.
    """
    _needs_clusters(method, "w")
    bounds = ClusterSize.of(settings.cluster_size)
    first = KMeansAssociation(method.num_clusters, method.policy.objective, "equal", bounds)
    return replace(method, policy=WarmUp(first, method.policy, settings.warm_up_rounds))


def with_finetuning(method: Method, settings: Settings) -> Method:
    """Clients train on from what serves them after the last round, for their test alone."""
    objective = method.policy.objective
    whole = replace(
        settings.flat, regularizers=(), phases=objective.phases, against=objective.against
    )
    return replace(method, finetuned=whole)


def _with_terms(method: Method, regularizers: tuple[Regularizer, ...], after: float) -> Method:
    """Add terms to the objective, after some rounds or a share of the run."""

    def extended(policy: Any) -> Policy:  # noqa: ANN401 - any policy with an objective
        objective = replace(
            policy.objective, regularizers=(*policy.objective.regularizers, *regularizers)
        )
        return cast(Policy, replace(policy, objective=objective))

    later = _innermost(method.policy, extended)
    return replace(method, policy=WarmUp(method.policy, later, after) if after else later)


def _innermost(policy: Any, change: Any) -> Policy:  # noqa: ANN401 - policies and wrappers
    """Change the policies inside the wrappers."""
    match policy:
        case WarmUp():
            first, then = _innermost(policy.first, change), _innermost(policy.then, change)
            return replace(policy, first=first, then=then)
        case PolicyWrapper():
            return cast(
                Policy, replace(cast(Any, policy), policy=_innermost(policy.policy, change))
            )
        case _:
            return cast(Policy, change(policy))


def _inside(objective: Objective) -> tuple[Regularizer, ...]:
    """The terms of an objective, about the clusters' own networks alone."""
    regularizers = cast(tuple[Any, ...], objective.regularizers)
    return tuple(replace(term, part=replace(term.part, block=OWN)) for term in regularizers)


def _needs_clusters(method: Method, suffix: str) -> None:
    if method.num_clusters == 1:
        raise ValueError(
            f"method {method.name!r} starts with one cluster: suffix -{suffix} needs one that "
            f"starts with several, such as 'ifca-{suffix}'"
        )
