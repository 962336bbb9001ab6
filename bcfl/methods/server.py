"""Suffixes of how the server combines models: `-fedopt`, `-median` and `-trimmed-mean`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from bcfl.methods.registry import combinator

if TYPE_CHECKING:
    from bcfl.aggregation.robust import RobustMean
    from bcfl.rounds.method import Method

RobustWeighting = Literal["clients", "samples"]
ServerRule = Literal["momentum", "adagrad", "yogi", "adam"]


@combinator("fedopt", "Reddi et al. 2021, algorithm 2", brings=("a server optimiser",))
def with_server_optimizer(
    method: "Method",
    *,
    server_rule: ServerRule = "adam",
    server_rate: float = 0.01,
    server_momentum: float | None = None,
    second_decay: float = 0.99,
    adaptivity: float = 1e-3,
) -> "Method":
    """Clusters take steps of an adaptive optimiser along their mean updates.

    A cluster that is divided hands its moments down, a new or merged one begins without.

    Args:
        method: any method.
        server_rule: FedAvgM (momentum), FedAdagrad, FedYogi or FedAdam.
        server_rate: eta, step size of the server.
        server_momentum: beta_1, decay of the first moment; none is 0.9, and 0 of Adagrad. Default:
            Reddi et al. 2021.
        second_decay: beta_2, decay of the second moment of Yogi and Adam. Default: Reddi et al.
            2021.
        adaptivity: tau; the larger, the less the step sizes of parameters differ. Default: Reddi
            et al. 2021.
    """
    from bcfl.aggregation.server_optimizer import AdaptiveServer

    usual = 0.0 if server_rule == "adagrad" else 0.9
    server = AdaptiveServer(
        rule=server_rule,
        learning_rate=server_rate,
        first_decay=usual if server_momentum is None else server_momentum,
        second_decay=second_decay,
        adaptivity=adaptivity,
    )
    return replace(method, aggregation=replace(method.aggregation, server=server))


@combinator("median", "Yin et al. 2018, definition 1", brings=("a robust mean",))
def with_median(method: "Method", *, robust_weighting: RobustWeighting = "clients") -> "Method":
    """Clusters become the coordinate-wise median of their clients' models.

    Args:
        method: a method that averages models, such as those of BCFL with `curvature` `samples`.
        robust_weighting: whether the weight of a client is the one that the policy gives it in the
            cluster, or this times its number of samples, which the client states itself.
    """
    from bcfl.aggregation.robust import Median

    return _robust(method, Median(robust_weighting))


@combinator("trimmed-mean", "Yin et al. 2018, definition 2", brings=("a robust mean",))
def with_trimmed_mean(
    method: "Method",
    *,
    trimmed_share: float = 0.2,
    robust_weighting: RobustWeighting = "clients",
) -> "Method":
    """Clusters become the coordinate-wise mean of their clients' models without the extremes.

    At least one client is left out at either end of each coordinate; of one or two clients it is
    the median.

    Args:
        method: a method that averages models, such as those of BCFL with `curvature` `samples`.
        trimmed_share: beta, share of the weight that is left out at either end, below 0.5; whole
            clients are left out.
        robust_weighting: whether the weight of a client is the one that the policy gives it in the
            cluster, or this times its number of samples, which the client states itself.
    """
    from bcfl.aggregation.robust import TrimmedMean

    return _robust(method, TrimmedMean(trimmed_share, robust_weighting))


def _robust(method: "Method", mean: "RobustMean") -> "Method":
    aggregation = replace(method.aggregation, robust=mean)
    aggregation.check(method.policy.objective)
    return replace(method, aggregation=aggregation)
