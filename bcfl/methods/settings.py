"""Numbers that the recipes of methods share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from assignment import SolverName
from bcfl.aggregation.aggregation import Aggregation
from bcfl.architecture.layout import Layers
from bcfl.policies.baselines.feddrift import check_delta
from bcfl.policies.bayes.temperature import Temperature
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.policies.faacl.support import SupportTesting
from bcfl.protocol.objective import Curvature, Objective
from posteriors import LocalPosteriorName

AdditiveAggregation = Literal["cluster_mean", "partial"]
Move = Literal["split", "birth", "death", "merge"]
NUMBER_CHANGING: tuple[Move, ...] = ("birth", "death", "merge")
AdditiveUpdate = Literal["alternating", "joint", "simultaneous"]


@dataclass(frozen=True)
class Settings:
    """Numbers that recipes share.

    Attributes:
        num_clusters: K of the clustered methods; `"auto"` lets `bcfl-mht-M` find it, starting
            from `first_clusters`.
        objective: local training; the recipe sets its curvature.
        curvature: curvature of the methods with posteriors.
        posterior: their local posteriors, see `Objective`.
        temperature: of the association weights, see `LikelihoodAssociation`; None is `"mean"`, as
            in the paper, and 1 for `bcfl-mht-M`.
        staying: prior probability that a client stays in its cluster; None is uniform.
        validation: share of the clients' training samples that methods set aside if they need
            held-out samples.
        calibration: share of the clients' training samples that every method sets aside so that
            predictions can be tuned on sums over them, see `Run.rule`. None by default: on small
            digits a fifth costs more likelihood than the temperature gives back once the models
            are trained; it pays where they are far from that, or trained for too long.
        score_samples: samples scored per client; None scores all.
        cluster_size: (lower, upper) bounds on the number of clients per cluster, None for no upper
            one; for all clustered methods.
        solver: how associations are ranked in the methods with posteriors.
        aggregation: of the methods with posteriors.
        prior_precision: of the prior around the initial network.
        warm_up_rounds: rounds of K-means on local models in `-w` methods.
        proximal: rho of FedProx.
        clustered_layers: layers on which FeSEM and WeCFL cluster; their thesis takes the
            `classifier`.
        clustering_rounds: rounds after which FeSEM and WeCFL keep their clusters; None never.
        contrast: mu of `-con` methods.
        contrast_temperature: tau of `-con` methods.
        contrast_warm_up: rounds, or share of the run below 1, before the contrast begins.
        sharing: lambda of `-cks` methods.
        additive_pull: lambda of FeSEM-CAM and WeCFL-CAM.
        additive_warm_up: rounds, or share of the run below 1, in which `-cam` methods train the
            shared network alone.
        additive_aggregation: `cluster_mean`: the clusters' own networks become the means of their
            clients', as in the released code of CAM; `partial`: they move by their share of all
            samples, as in the paper (equation 6).
        epsilon: by how much a supporter's model may be worse in FAACL's tests, nats per sample.
        alpha: significance level of these tests.
        delta: bound of FedDrift on losses, nats per sample.
        additive_update: how the two networks of `-cam` methods are trained: `alternating`, the
            shared one against the updated own one (the released code of IFCA-CAM); as one,
            `joint`ly; or `simultaneous`ly, each against the other as it was sent (the paper). The
            last makes up for the same errors twice, and diverges unless the steps are small.
        first_clusters: how many clusters `"auto"` begins with, at most one for each client. From
            more than there are it finds groups that a common model serves nearly as well; from one
            it often misses those.
        moves: what `bcfl-mht-M` proposes, see `bcfl.trackers.proposals`; None is what has paid:
            `split`, and with `"auto"` also `from_initial` and `death`.
    """

    num_clusters: int | Literal["auto"] = 4
    objective: Objective = field(default_factory=Objective)
    curvature: Curvature = "ggn"
    posterior: LocalPosteriorName = "laplace-diag"
    temperature: Temperature | None = None
    staying: float | None = None
    validation: float = 0.25
    calibration: float = 0.0
    score_samples: int | None = None
    cluster_size: ClusterSize | tuple[int, int | None] = FREE
    solver: SolverName = "auto"
    aggregation: Aggregation = field(default_factory=Aggregation)
    prior_precision: float = 1.0
    warm_up_rounds: int = 2
    proximal: float = 0.95
    clustered_layers: Layers = "all"
    clustering_rounds: int | None = None
    contrast: float = 0.5
    contrast_temperature: float = 1.0
    contrast_warm_up: float = 0.1
    sharing: float = 0.1
    additive_pull: float = 0.01
    additive_warm_up: float = 0.3
    additive_aggregation: AdditiveAggregation = "cluster_mean"
    additive_update: AdditiveUpdate = "alternating"
    epsilon: float = 0.7
    alpha: float = 0.1
    delta: float = 0.25
    first_clusters: int = 8
    moves: tuple[Move, ...] | None = None

    def __post_init__(self) -> None:
        if self.num_clusters != "auto" and not isinstance(self.num_clusters, int):
            raise ValueError(
                f"num_clusters must be a whole number or 'auto', got {self.num_clusters!r}"
            )
        for name in ("validation", "calibration"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        allowed = {
            "additive_aggregation": get_args(AdditiveAggregation),
            "additive_update": get_args(AdditiveUpdate),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name} must be one of {', '.join(values)}, got {getattr(self, name)!r}"
                )
        SupportTesting(self.epsilon, self.alpha)
        check_delta(self.delta)
        self._check_moves()
        if self.warm_up_rounds < 0:
            raise ValueError(f"warm_up_rounds must be at least 0, got {self.warm_up_rounds}")
        held_out = self.num_clusters == "auto" or self.temperature == "auto"
        if held_out and not self.validation > 0:
            raise ValueError(
                "num_clusters 'auto' and temperature 'auto' need held-out samples: validation must "
                f"be above 0, got {self.validation}"
            )

    def _check_moves(self) -> None:
        if self.first_clusters < 1:
            raise ValueError(f"first_clusters must be at least 1, got {self.first_clusters}")
        for move in self.moves or ():
            if move not in get_args(Move):
                raise ValueError(f"moves must be of {', '.join(get_args(Move))}, got {move!r}")
            if move in NUMBER_CHANGING and self.num_clusters != "auto":
                raise ValueError(
                    f"move {move!r} changes the number of clusters: num_clusters must be 'auto', "
                    f"got {self.num_clusters}"
                )

    @property
    def known_clusters(self) -> int:
        """K, for methods that must be told.

        Raises:
            ValueError: it is to be found.
        """
        if self.num_clusters == "auto":
            raise ValueError(
                "num_clusters 'auto' is for bcfl-mht-M alone; this method needs a number"
            )
        return self.num_clusters

    @property
    def flat(self) -> Objective:
        """Local training of methods without posteriors."""
        return replace(self.objective, curvature="samples", prior_weight=0.0)

    @property
    def laplace(self) -> Objective:
        """Local training of methods with posteriors."""
        return replace(self.objective, curvature=self.curvature, posterior=self.posterior)
