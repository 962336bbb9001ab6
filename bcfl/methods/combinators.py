"""Combinators: suffixes of a name, each of which extends a method."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from bcfl.methods.choices import Layers
from bcfl.methods.registry import combinator

if TYPE_CHECKING:
    from bcfl.policies import Policy
    from bcfl.protocol.loss_terms import Regularizer
    from bcfl.protocol.objective import Objective
    from bcfl.rounds.method import Method


@combinator("con-para", "Ma 2023, equation 4.3", brings=("contrast",))
def with_contrast(
    method: "Method",
    *,
    weight: float = 0.5,
    contrast_temperature: float = 1.0,
    contrast_warm_up: float = 0.1,
    contrasted_layers: Layers = "all",
    contrast_few_shots: int | None = 10,
) -> "Method":
    """Contrast between the clusters' parameters.

    Args:
        method: a clustered method.
        weight: mu, weight of the contrast. Default: of the grid 0.1, 0.5, 2, 5 of Ma 2023.
        contrast_temperature: tau, which divides the similarities. Default: of the grid 0.1, 1,
            10 of Ma 2023.
        contrast_warm_up: rounds, or share of the run below 1, before the contrast begins.
        contrasted_layers: layers that are compared. Default: Ma 2023, chapter 4.
        contrast_few_shots: rounds after which clients that K-means has clustered keep their
            clusters; none is no limit. Default: Ma 2023, section 4.4.1.
    """
    from bcfl.architecture.layout import Part
    from bcfl.protocol.regularizers import Contrast

    _check_clustered(method, "con-para")
    term = Contrast(weight, contrast_temperature, part=Part(layers=contrasted_layers))
    return _with_regularizer(_few_shot(method, contrast_few_shots), term, contrast_warm_up)


@combinator("con-rep", "Ma 2023, equation 4.4", brings=("contrast",))
def with_output_contrast(
    method: "Method",
    *,
    weight: float = 0.5,
    contrast_temperature: float = 1.0,
    contrast_warm_up: float = 0.1,
    contrast_few_shots: int | None = 10,
) -> "Method":
    """Contrast between the clusters' outputs.

    Args:
        method: a clustered method.
        weight: mu, weight of the contrast. Default: of the grid 0.1, 0.5, 2, 5 of Ma 2023.
        contrast_temperature: tau, which divides the similarities. Default: of the grid 0.1, 1,
            10 of Ma 2023.
        contrast_warm_up: rounds, or share of the run below 1, before the contrast begins.
        contrast_few_shots: rounds after which clients that K-means has clustered keep their
            clusters; none is no limit. Default: Ma 2023, section 4.4.1.
    """
    from bcfl.protocol.regularizers import Contrast

    _check_clustered(method, "con-rep")
    term = Contrast(weight, contrast_temperature, "outputs")
    return _with_regularizer(_few_shot(method, contrast_few_shots), term, contrast_warm_up)


@combinator("con-cks", "Ma 2023, equation 6.1", brings=("contrast", "sharing"))
def with_contrast_and_sharing(
    method: "Method",
    *,
    weight: float = 0.5,
    contrast_temperature: float = 1.0,
    contrast_warm_up: float = 0.1,
    contrasted_layers: Layers = "classifier",
    sharing: float = 0.1,
    sharing_warm_up: float = 1,
    shared_layers: Layers = "body",
    contrast_few_shots: int | None = 10,
) -> "Method":
    """Contrast on the classifier, pull on the rest.

    Args:
        method: a clustered method.
        weight: mu, weight of the contrast. Default: of the grid 0.1, 0.5, 2, 5 of Ma 2023.
        contrast_temperature: tau, which divides the similarities. Default: of the grid 0.1, 1,
            10 of Ma 2023.
        contrast_warm_up: rounds, or share of the run below 1, before the contrast begins.
        contrasted_layers: layers that are compared. Default: Ma 2023, chapter 6.
        sharing: lambda, weight of the pull towards the mean model. Default: of the grid 0.001,
            0.01, 0.1, 1 of Ma 2023.
        sharing_warm_up: rounds, or share of the run below 1, before the pull begins.
        shared_layers: layers that are pulled. Default: Ma 2023, chapter 6.
        contrast_few_shots: rounds after which clients that K-means has clustered keep their
            clusters; none is no limit. Default: Ma 2023, section 4.4.1.
    """
    _check_clustered(method, "con-cks")
    shared = with_sharing(
        method,
        sharing=sharing,
        sharing_warm_up=sharing_warm_up,
        shared_layers=shared_layers,
        sharing_few_shots=contrast_few_shots,
    )
    return with_contrast(
        shared,
        weight=weight,
        contrast_temperature=contrast_temperature,
        contrast_warm_up=contrast_warm_up,
        contrasted_layers=contrasted_layers,
        contrast_few_shots=None,
    )


@combinator("cks", "Ma 2023, equations 5.5 and 5.6", brings=("sharing",))
def with_sharing(
    method: "Method",
    *,
    sharing: float = 0.1,
    sharing_warm_up: float = 1,
    shared_layers: Layers = "all",
    sharing_few_shots: int | None = 10,
) -> "Method":
    """Pulls towards the mean model of all clusters.

    Args:
        method: a clustered method.
        sharing: lambda, weight of the pull towards the mean model. Default: of the grid 0.001,
            0.01, 0.1, 1 of Ma 2023.
        sharing_warm_up: rounds, or share of the run below 1, before the pull begins.
        shared_layers: layers that are pulled. Default: Ma 2023, chapter 5.
        sharing_few_shots: rounds after which clients that K-means has clustered keep their
            clusters; none is no limit. Default: Ma 2023, section 4.4.1.
    """
    from bcfl.architecture.layout import Part
    from bcfl.protocol.regularizers import Sharing

    _check_clustered(method, "cks")
    term = Sharing(sharing, Part(layers=shared_layers))
    return _with_regularizer(_few_shot(method, sharing_few_shots), term, sharing_warm_up)


@combinator("cam", "Ma et al. 2023, equations 5 to 12", brings=("warm-up",))
def with_additive_model(
    method: "Method",
    *,
    update: Literal["alternating", "joint", "simultaneous"] = "alternating",
    pull: float = 0.01,
    warm_up: float = 0.3,
    aggregation: Literal["cluster_mean", "partial"] = "cluster_mean",
) -> "Method":
    """Adds a network that all clusters share; logits are summed.

    K-means and its centres are weighted by samples then (equations 10 and 11).

    Args:
        method: a clustered method.
        update: whether the shared network is trained after the cluster's own, given its outputs,
            both are trained together, or each given the other as it was sent (the paper), which
            corrects the same errors twice and diverges unless the steps are small. Default: the
            authors' program.
        pull: lambda, weight of the pull of the own networks towards their centroids where they are
            clustered by distance. Default: of the grid 0.001, 0.01, 0.1 of Ma et al. 2023.
        warm_up: rounds, or share of the run below 1, in which one network is trained alone: the
            shared one by all clients, or where clients are clustered by distance, each client's
            own. Default: 30 of 100 rounds, Ma et al. 2023, section 5.
        aggregation: whether the clusters' networks become the means of their clients', or move by
            their share of all samples (equation 6). Default: the authors' program.
    """
    from bcfl.architecture.additive import OWN, SHARED, additive
    from bcfl.policies import KMeansAssociation, LocalFirst, SharedFirst
    from bcfl.policies.wrappers.partial import Partial
    from bcfl.policies.wrappers.policy_wrapper import chain_of
    from bcfl.protocol.regularizers import Proximal

    _check_clustered(method, "cam")

    def divided(policy: Any) -> Any:  # noqa: ANN401 - any policy with an objective
        objective = replace(
            policy.objective,
            phases=((OWN, SHARED),) if update == "joint" else ((OWN,), (SHARED,)),
            against="updated" if update == "alternating" else "start",
            regularizers=_inside(policy.objective),
        )
        if isinstance(policy, KMeansAssociation):
            part = replace(policy.part, block=OWN)
            terms = (*objective.regularizers, Proximal(pull, part))
            objective = replace(objective, regularizers=terms, curvature="samples")
            policy = replace(policy, part=part, weighting="samples")
        return replace(policy, objective=objective)

    policy = _innermost(method.policy, divided)
    last: Any
    *_, last = chain_of(policy)
    first: Objective = replace(last.objective, regularizers=())
    if aggregation == "partial":
        policy = Partial(policy)
    if isinstance(last, KMeansAssociation):
        local = replace(last, objective=replace(first, phases=((OWN,),)))
        policy = LocalFirst(policy=policy, first=local, rounds=warm_up, silent=SHARED)
    else:
        shared = replace(first, phases=((SHARED,),))
        policy = SharedFirst(policy=policy, alone=shared, rounds=warm_up, silent=OWN)
    return replace(method, policy=policy, architecture=additive)


@combinator(
    "w", "A Bayesian framework for clustered federated learning, section 5", brings=("warm-up",)
)
def with_warm_up(method: "Method", *, warm_up_rounds: float = 2) -> "Method":
    """Rounds of K-means on local models first.

    Args:
        method: a clustered method.
        warm_up_rounds: rounds of K-means, or their share of the run below 1. Default: the paper,
            section 5.
    """
    from bcfl.policies import WarmUp

    _check_clustered(method, "w")
    return replace(method, policy=WarmUp.by_kmeans(method.policy, warm_up_rounds))


@combinator("finetune", "Ma 2023, section 7.4.4", brings=("fine-tuning",))
def with_finetuning(method: "Method", *, finetuning_steps: int | None = None) -> "Method":
    """Clients fine-tune before the tests of the last three rounds.

    Of a stream these are rounds of its last time step; there clients fine-tune before the test at
    the end of each earlier time step too.

    Args:
        method: any method.
        finetuning_steps: local steps; none is as many as in a round.
    """
    objective = method.policy.objective
    if finetuning_steps is not None:
        objective = replace(objective, local_steps=finetuning_steps, local_epochs=None)
    plain = replace(
        objective,
        curvature="samples",
        prior_weight=0.0,
        regularizers=(),
        upload=None,
    )
    return replace(method, finetuned=plain)


def _with_regularizer(method: "Method", term: "Regularizer", after: float) -> "Method":
    """Add a term to the objective, after some rounds or a share of the run."""
    from bcfl.policies import WarmUp

    def extended(policy: Any) -> Any:  # noqa: ANN401 - any policy with an objective
        objective = policy.objective
        return replace(
            policy, objective=replace(objective, regularizers=(*objective.regularizers, term))
        )

    later = _innermost(method.policy, extended)
    return replace(method, policy=WarmUp(method.policy, later, after) if after else later)


def _few_shot(method: "Method", rounds: int | None) -> "Method":
    """Have K-means cluster in the first rounds alone, unless it already does."""
    from bcfl.policies import Frozen, KMeansAssociation
    from bcfl.policies.wrappers.policy_wrapper import chain_of

    if rounds is None or any(isinstance(policy, Frozen) for policy in chain_of(method.policy)):
        return method
    few: int = rounds

    def frozen(policy: Any) -> Any:  # noqa: ANN401 - any policy
        return Frozen(policy, few) if isinstance(policy, KMeansAssociation) else policy

    return replace(method, policy=_innermost(method.policy, frozen))


def _innermost(policy: "Policy", change: Callable[[Any], Any]) -> "Policy":
    """Apply a change to the innermost policies."""
    from bcfl.policies import WarmUp
    from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper

    inside: Any = policy
    match inside:
        case WarmUp():
            first, then = _innermost(inside.first, change), _innermost(inside.then, change)
            return replace(inside, first=first, then=then)
        case PolicyWrapper():
            wrapper: Any = inside
            return cast("Policy", replace(wrapper, policy=_innermost(inside.policy, change)))
        case _:
            return cast("Policy", change(policy))


def _inside(objective: "Objective") -> "tuple[Regularizer, ...]":
    """The terms of an objective, about the clusters' own networks alone."""
    from bcfl.architecture.additive import OWN

    regularizers = cast("tuple[Any, ...]", objective.regularizers)
    return tuple(replace(term, part=replace(term.part, block=OWN)) for term in regularizers)


def _check_clustered(method: "Method", suffix: str) -> None:
    if method.num_clusters == 1:
        raise ValueError(
            f"method {method.name!r} starts with one cluster: suffix -{suffix} needs one that "
            f"starts with several, such as 'ifca-{suffix}'"
        )
