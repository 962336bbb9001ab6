"""The suffix `-fedopt`: server optimisers on the mean updates of clusters (Reddi et al., 2021)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from bcfl.methods.registry import combinator

if TYPE_CHECKING:
    from bcfl.rounds.method import Method

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
