"""The tables of a scenario: data, choices by name, training, rules of the federation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Data:
    """Where the samples come from.

    Attributes:
        dataset: name of a data set, an `.npz` file, or a folder of IDX files.
        data_dir: folder in which names are looked for first.
    """

    dataset: str
    data_dir: str | None = None


@dataclass(frozen=True)
class ExecutorConfig:
    """Something built by name: the partition, the model.

    Attributes:
        name: which one.
        options: its keyword arguments.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """Local training, see `bcfl.Objective`."""

    local_steps: int = 10
    batch_size: int = 32
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    prior_weight: float = 0.0


@dataclass(frozen=True)
class Rules:
    """What holds for the whole federation; table `[federation]`.

    Attributes:
        rounds: rounds of every method.
        num_clusters: K of the clustered methods, or `auto` where a method can find it.
        first_clusters: how many clusters `auto` begins with.
        client_fraction: share of the clients asked per round, in (0, 1].
        drop_out: probability that an asked client drops out of a round.
        score_samples: samples scored per client and model, or `all`.
        curvature: of methods with posteriors, see `bcfl.Objective`.
        posterior: local posteriors of these methods, see `bcfl.Objective`.
        curvature_samples: samples of a client that its curvature is taken from, or `all`.
        temperature: of the association weights: `mean` or `auto` (see
            `bcfl.policies.LikelihoodAssociation`), what divides the summed loss, or `default` for
            that of each method.
        staying: prior probability that a client stays in its cluster, or `uniform`.
        validation: share of training samples set aside by methods that need held-out samples.
        calibration: share of training samples that every method sets aside to tune predictions on.
        min_cluster_size: fewest clients of a cluster, where association is by loss or weight.
        max_cluster_size: most clients of a cluster there, or `all`.
        solver: how methods with posteriors rank associations.
        fusion: how local posteriors are fused, see `bcfl.Aggregation`.
        memory: what the next round's prior remembers, see `bcfl.Aggregation`.
        decay: share that the memory `forget` keeps per round.
        prior_precision: of the prior around the initial network, per parameter.
        warm_up_rounds: rounds of K-means on local models in `-w` methods.
        epsilon: by how much a supporter's model may be worse in FAACL's tests, nats per sample.
        alpha: significance level of these tests.
        delta: bound of FedDrift on losses, nats per sample.
        checkpoint_every: rounds between checkpoints.
    """

    rounds: int = 25
    num_clusters: int | Literal["auto"] = 4
    first_clusters: int = 8
    client_fraction: float = 1.0
    drop_out: float = 0.0
    score_samples: int | Literal["all"] = "all"
    curvature: Literal["ggn", "mc_ggn", "empirical_fisher", "samples", "uniform"] = "ggn"
    posterior: Literal[
        "laplace-diag",
        "laplace-last-layer",
        "laplace-kron",
        "laplace-full",
        "laplace-subnetwork",
        "variational",
        "nuts",
    ] = "laplace-diag"
    curvature_samples: int | Literal["all"] = 128
    temperature: float | Literal["default", "mean", "auto"] = "default"
    staying: float | Literal["uniform"] = "uniform"
    validation: float = 0.25
    calibration: float = 0.0
    min_cluster_size: int = 0
    max_cluster_size: int | Literal["all"] = "all"
    solver: Literal["auto", "argmin", "heap", "murty", "hungarian"] = "auto"
    fusion: Literal["precision_weighted", "exact", "literal"] = "precision_weighted"
    memory: Literal["replace", "forget", "accumulate"] = "replace"
    decay: float = 0.9
    prior_precision: float = 1.0
    warm_up_rounds: int = 2
    epsilon: float = 0.7
    alpha: float = 0.1
    delta: float = 0.25
    checkpoint_every: int = 5

    def __post_init__(self) -> None:
        for name in ("rounds", "num_clusters", "first_clusters", "checkpoint_every"):
            if getattr(self, name) != "auto" and getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.warm_up_rounds < 0:
            raise ValueError(f"warm_up_rounds must be at least 0, got {self.warm_up_rounds}")
        if not 0 < self.client_fraction <= 1:
            raise ValueError(f"client_fraction must lie in (0, 1], got {self.client_fraction}")
        if not 0 <= self.drop_out <= 1:
            raise ValueError(f"drop_out must lie between 0 and 1, got {self.drop_out}")

    def lasting(self, rounds: int) -> Rules:
        """The same with another number of rounds; the warm-up keeps its share of them."""
        if rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {rounds}")
        warm_up = round(self.warm_up_rounds * rounds / self.rounds)
        least = min(self.warm_up_rounds, 1)
        return replace(self, rounds=rounds, warm_up_rounds=max(warm_up, least))
