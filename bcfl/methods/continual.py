"""Baselines of FAACL: soft clusters, clusters that follow drift, continual learning."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Unpack

from bcfl.methods.registry import recipe
from bcfl.methods.training import Common, flat, with_regularizers

if TYPE_CHECKING:
    from bcfl.rounds.method import Method


@recipe("fedsoft", "Ruan and Joe-Wong 2022, algorithms 1 and 2")
def fedsoft(
    *,
    num_clusters: int = 4,
    attraction: float = 0.1,
    smoothing: float = 1e-4,
    every: int = 1,
    drawn: int | None = None,
    **common: Unpack[Common],
) -> "Method":
    """Each client contributes to all clusters, by the share of samples that each fits best.

    Args:
        num_clusters: number K of clusters.
        attraction: lambda, weight of the pull towards the clusters. Default: the authors'
            program, MNIST.
        smoothing: sigma, importance of a cluster that is best for no sample. Default: the authors'
            program.
        every: tau, rounds between estimates of the importances. Default: the authors' program.
        drawn: number of clients that each cluster draws by importance and averages, as in algorithm
            1; with none, all participants contribute to all clusters by importance.
    """
    from bcfl.policies.baselines.fedsoft import FedSoft
    from bcfl.rounds.method import Method

    objective = flat(**common)
    if drawn is not None:
        objective = replace(objective, curvature="uniform")
    return Method(
        policy=FedSoft(
            num_clusters=num_clusters,
            objective=objective,
            attraction=attraction,
            smoothing=smoothing,
            every=every,
            drawn=drawn,
        ),
        belief_temperature=None,
    )


@recipe("feddrift", "Jothimurugesan et al. 2023, algorithms 1 and 2")
def feddrift(
    *,
    delta: float = 0.25,
    every: float = 0.1,
    start: Literal["each", "one"] = "each",
    drifted: Literal["alone", "together"] = "alone",
    max_clusters: int | None = None,
    trains_on: Literal["all", "current"] = "all",
    **common: Unpack[Common],
) -> "Method":
    """One cluster per client at first; similar clusters are merged.

    Args:
        delta: bound on losses, nats per sample; the paper's program compares accuracies.
        every: rounds, or share of the run, between regroupings within a time step.
        start: whether each client opens a cluster at first, or all begin in one.
        drifted: whether clients that drift open clusters alone, or one together (FedDrift-Eager).
        max_clusters: most clusters; none is no bound.
        trains_on: whether clients train a cluster on all samples that they ever brought to it, or
            on those of the time step. Default: the paper.
    """
    from bcfl.policies.baselines.feddrift import FedDrift
    from bcfl.rounds.method import Method

    policy = FedDrift(
        objective=flat(**common),
        delta=delta,
        every=every,
        start=start,
        drifted=drifted,
        max_clusters=max_clusters,
        trains_on=trains_on,
    )
    return Method(policy=policy, common_start=True)


@recipe("ewc", "Kirkpatrick et al. 2017, equation 3, on FedProx")
def ewc(
    *,
    weight: float = 10.0,
    fisher_decay: float = 0.9,
    proximal: float = 0.01,
    **common: Unpack[Common],
) -> "Method":
    """FedProx with elastic weight consolidation between time steps.

    Args:
        weight: lambda, weight of the consolidation.
        fisher_decay: gamma, share of the earlier Fisher information that is kept at each time step.
        proximal: rho, weight of the squared distance from the common model. Default: of the grid
            0.001, 0.01, 0.1, 1 of Li et al. 2020.
    """
    from bcfl.policies.baselines.ewc import EWC
    from bcfl.protocol.regularizers import Proximal
    from bcfl.rounds.method import Method

    objective = with_regularizers(flat(**common), Proximal(proximal))
    return Method(policy=EWC(objective, weight, fisher_decay), common_start=True)


@recipe("ssgd", "Mirzadeh et al. 2020, section 4, on FedProx")
def ssgd(
    *,
    first_rate: float = 0.1,
    rate_decay: float = 0.8,
    least_rate: float = 5e-5,
    dropout: float = 0.25,
    max_batch_size: int = 10,
    proximal: float = 0.01,
    **common: Unpack[Common],
) -> "Method":
    """FedProx with dropout, small batches and a falling learning rate.

    Args:
        first_rate: learning rate that falls from time step to time step, whatever that of other
            methods. Default: the authors' program.
        rate_decay: gamma, factor of the learning rate at each time step. Default: the authors'
            program, permuted MNIST and CIFAR.
        least_rate: smallest learning rate. Default: the authors' program.
        dropout: share of the activations that are dropped in training.
        max_batch_size: most samples per step. Default: the authors' program.
        proximal: rho, weight of the squared distance from the common model. Default: of the grid
            0.001, 0.01, 0.1, 1 of Li et al. 2020.
    """
    from bcfl.architecture.dropout import with_dropout
    from bcfl.policies.baselines.stable_sgd import StableSGD
    from bcfl.protocol.regularizers import Proximal
    from bcfl.rounds.method import Method

    objective = with_regularizers(flat(**common), Proximal(proximal))
    size = min(objective.batch_size, max_batch_size)
    small = replace(objective, batch_size=size, learning_rate=first_rate)
    return Method(
        policy=StableSGD(small, rate_decay, least_rate),
        common_start=True,
        architecture=partial(with_dropout, rate=dropout),
    )


@recipe("apd", "Yoon et al. 2020, equation 2, on FedProx")
def apd(
    *,
    retention: float = 100.0,
    sparsity: float = 4e-4,
    proximal: float = 0.01,
    **common: Unpack[Common],
) -> "Method":
    """FedProx on shared weights, with each client's masks and sparse weights.

    Every client is its own cluster; the shared weights are common to all.

    Args:
        retention: lambda_2, weight of the penalty on changes of earlier time steps. Default: the
            authors' program.
        sparsity: lambda_1, weight of the absolute adaptive parameters; those up to this size are
            left out when predicting. Default: the authors' program.
        proximal: rho, weight of the squared distance of the shared weights from those that were
            sent. Default: of the grid 0.001, 0.01, 0.1, 1 of Li et al. 2020.
    """
    from bcfl.architecture.decomposition import SHARED, decomposed
    from bcfl.architecture.layout import Part
    from bcfl.policies.baselines.apd import APD
    from bcfl.protocol.adaptive_terms import Sparsity
    from bcfl.protocol.regularizers import Proximal
    from bcfl.rounds.method import Method

    held = Proximal(proximal, Part(SHARED))
    objective = with_regularizers(flat(**common), held, Sparsity(sparsity))
    return Method(
        policy=APD(objective, retention, sparsity),
        common_start=True,
        architecture=partial(decomposed, least=sparsity),
    )


@recipe("fedweit", "Yoon et al. 2021, equations 2 and 3")
def fedweit(
    *,
    retention: float = 1.0,
    sparsity: float = 1e-3,
    masked_share: float = 0.3,
    least: float = 1e-3,
    slots: int = 10,
    **common: Unpack[Common],
) -> "Method":
    """APD with masked uploads, and attention to others' sparse weights.

    Args:
        retention: lambda_2, weight of the penalty on changes of earlier time steps.
        sparsity: lambda_1, weight of the absolute adaptive parameters. Default: the authors'
            program.
        masked_share: share of the outputs of a layer that is not sent. Default: the authors'
            program.
        least: adaptive weights up to this size are neither sent nor shared, and are left out when
            predicting. Default: the authors' program.
        slots: number of clients whose adaptive weights a network attends to.
    """
    from bcfl.architecture.decomposition import ADAPTIVE, OWN, SHARED
    from bcfl.architecture.fedweit import MaskedUpload, transferring
    from bcfl.policies.baselines.apd import APD
    from bcfl.policies.baselines.fedweit import FedWeIT
    from bcfl.protocol.adaptive_terms import Sparsity
    from bcfl.rounds.method import Method

    objective = replace(
        with_regularizers(flat(**common), Sparsity(sparsity)),
        curvature="uniform",
        phases=((SHARED, ADAPTIVE, OWN),),
        upload=MaskedUpload(masked_share, least),
    )
    policy = FedWeIT(APD(objective, retention), least)
    architecture = partial(transferring, slots=slots, least=least)
    return Method(policy=policy, common_start=True, architecture=architecture)
