"""A method: a policy, a tracker and an aggregation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from reprlib import repr as shortened
from typing import get_args

from bcfl.aggregation.aggregation import Aggregation
from bcfl.architecture.model import Model
from bcfl.executors.randomized import OTHERS, check_private
from bcfl.policies import Centralised, Policy, SideBySide
from bcfl.policies.policy import Validates
from bcfl.policies.wrappers.policy_wrapper import asked_by
from bcfl.protocol.objective import Objective
from bcfl.protocol.statistics.predictions import Pooling
from bcfl.runtime import as_given, check_whole, is_real, is_whole
from bcfl.trackers import Greedy, Tracker
from bcfl.trackers.tracker import ChecksRounds
from posteriors.evidence.closed_form import Temperature


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of clustered federated learning.

    Attributes:
        policy: cost and solver that rank the associations.
        tracker: which association hypotheses are followed and kept.
        aggregation: how local models become cluster models.
        name: for tables and folders.
        common_start: all clusters begin at the same network, as in FedAvg, FeSEM and WeCFL;
            otherwise each begins at its own, as in IFCA and BCFL.
        validation: share of each client's training samples that is set aside, for methods that
            judge or fit something on held-out samples.
        calibration: share of these that serves the tuning of predictions after the run alone, and
            not the method; clients with `bcfl.Privacy` do not send the sums for it.
        starts: how many hypotheses there are at the beginning, each with its own networks.
        prior_precision: precision of the prior around the initial network, per parameter.
        architecture: transforms the federation's network into that of the method, such as
            `additive`; None keeps it.
        pooling: how predictions of the models that serve a client are combined.
        finetuned: objective by which clients fine-tune what serves them after each of the last
            three rounds, for the test alone; None is no fine-tuning. For streams see
            `bcfl.rounds.round.RoundConfig.reported`.
        finds_number: the number of clusters is found, so where there are fewer clients than
            clusters to begin with, it begins with as many as there are clients.
        belief_temperature: divides clients' summed losses where memberships are recorded after a
            round (see `bcfl.rounds.beliefs`); `"mean"` divides them by the number of samples; None
            records none. Where the policy states a belief of its own, that is kept. Default:
            measured, a compromise: sharper is better where groups were found, flatter where not.

    Raises:
        TypeError: a part is of another type, or lacks what it must have.
        ValueError: a number or a name is not allowed.

    Example:
        With `method` of the example of `bcfl.Federation`, which keeps one hypothesis; here four:

        >>> from dataclasses import replace
        >>> from bcfl.trackers import MultiHypothesis
        >>> method
        Method(ifca: LikelihoodAssociation, Greedy)
        >>> replace(method, tracker=MultiHypothesis(4), name="ifca-4")
        Method(ifca-4: LikelihoodAssociation, MultiHypothesis)
    """

    policy: Policy
    tracker: Tracker = field(default_factory=Greedy)
    aggregation: Aggregation = field(default_factory=Aggregation)
    name: str = "custom"
    common_start: bool = False
    prior_precision: float = 1.0
    validation: float = 0.0
    calibration: float = 0.0
    starts: int = 1
    architecture: Callable[[Model], Model] | None = None
    pooling: Pooling = "probabilities"
    finetuned: Objective | None = None
    finds_number: bool = False
    belief_temperature: Temperature | None = 16.0

    def __post_init__(self) -> None:
        check_policy(self.policy)
        _check_tracker(self.tracker)
        self._check_parts()
        self._check_numbers()

    def __repr__(self) -> str:
        policy, tracker = type(self.policy).__name__, type(self.tracker).__name__
        return f"Method({self.name}: {policy}, {tracker})"

    def _check_parts(self) -> None:
        parts = {
            "aggregation": (Aggregation, "a bcfl.Aggregation"),
            "name": (str, "text"),
            "common_start": (bool, "True or False"),
            "finds_number": (bool, "True or False"),
            "finetuned": (Objective | None, "a bcfl.Objective or None"),
        }
        for name, (kind, allowed) in parts.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be {allowed}, got {as_given(value)}")
        if self.architecture is not None and not callable(self.architecture):
            raise TypeError(
                "architecture must be a function from a model to a model, or None, got "
                f"{shortened(self.architecture)}"
            )
        if self.pooling not in get_args(Pooling):
            allowed = ", ".join(map(repr, get_args(Pooling)))
            raise ValueError(f"pooling must be one of {allowed}, got {self.pooling!r}")

    def _check_numbers(self) -> None:
        precision = self.prior_precision
        if not (is_real(precision) and 0 < precision < float("inf")):
            raise ValueError(f"prior_precision must be positive and finite, got {precision!r}")
        for name in ("validation", "calibration"):
            share = getattr(self, name)
            if not (is_real(share) and 0 <= share < 1):
                raise ValueError(f"{name} must lie in [0, 1), got {share!r}")
        check_whole("starts", self.starts)
        temperature = self.belief_temperature
        if temperature not in (None, "mean") and not (
            isinstance(temperature, int | float) and 0 < temperature < float("inf")
        ):
            raise ValueError(
                f"belief_temperature must be 'mean', a positive number or None, got {temperature!r}"
            )

    @property
    def num_clusters(self) -> int:
        """Number of clusters that the method starts with, given enough clients."""
        return self.policy.num_clusters

    def first_clusters(self, num_clients: int) -> int:
        """Number of clusters that it starts with, given so many clients."""
        return min(self.num_clusters, num_clients) if self.finds_number else self.num_clusters

    def adapted(self, model: Model) -> Model:
        """The method's network, made of the one that the federation is given."""
        return model if self.architecture is None else self.architecture(model)

    def check(self, num_clients: int, num_participants: int) -> None:
        """Check that the method can serve a federation, as far as that shows before work starts.

        Args:
            num_clients: clients of the federation.
            num_participants: number of participants of a round.

        Raises:
            ValueError: there are more clusters than clients, or policy, tracker or aggregation
                refuse.
        """
        first = self.first_clusters(num_clients)
        alone = (
            max(policy.num_clusters for policy in self.policy.policies)
            if isinstance(self.policy, SideBySide)
            else first
        )
        if alone > num_clients:
            raise ValueError(
                f"num_clusters must be at most the number of clients, {num_clients}, got {alone}"
            )
        self.aggregation.check(self.policy.objective)
        for part in (self.policy, self.tracker):
            if isinstance(part, Validates):
                part.check(first, num_clients, num_participants)

    def check_private(self, model: Model) -> None:
        """Check that clients with differential privacy send all that the method asks for.

        Args:
            model: the network of the method.

        Raises:
            ValueError: they do not.
        """
        if isinstance(self.policy, Centralised):
            raise ValueError(f"privacy: {self.name!r} pools the clients' samples; {OTHERS}")
        check_private(model, self.policy.objective, asked_by(self.policy))
        if self.calibration:
            raise ValueError(
                "privacy: calibration sets training samples aside for sums of held-out losses, "
                "which a client with differential privacy does not send, so that these samples "
                f"would be of no use; set calibration, or validation, to 0, got {self.calibration}"
            )

    def check_rounds(self, num_hypotheses: int, num_participants: int, rounds: range) -> None:
        """Check that the tracker can do the rounds of a run.

        Args:
            num_hypotheses: hypotheses before the first of them.
            num_participants: participants of a round.
            rounds: their numbers, from 0.

        Raises:
            ValueError: it cannot.
        """
        if isinstance(self.tracker, ChecksRounds):
            clusters = self.policy.num_clusters
            self.tracker.check_rounds(num_hypotheses, clusters, num_participants, rounds)


def check_policy(policy: object) -> None:
    """Check that a policy has what `bcfl.policies.Policy` says.

    Args:
        policy: what is to be one.

    Raises:
        TypeError: it is a name or a class, or lacks an attribute, or one is of another type.
        ValueError: it starts with no cluster.
    """
    if isinstance(policy, str):
        raise TypeError(
            f"policy must be a policy with `associate`, got {policy!r}; a method by its name: "
            "bcfl.methods.build(name)"
        )
    name = type(policy).__name__
    if isinstance(policy, type) or not callable(getattr(policy, "associate", None)):
        raise TypeError(f"policy must be a policy with `associate`, got {as_given(policy)}")
    for attribute in ("num_clusters", "objective"):
        if not hasattr(policy, attribute):
            raise TypeError(
                f"policy must have `num_clusters`, `objective` and `associate`, {name} has no "
                f"`{attribute}`"
            )
    found, objective = policy.num_clusters, policy.objective  # type: ignore[attr-defined]
    if not is_whole(found, 1):
        raise ValueError(
            f"num_clusters must be a whole number of at least 1, {name} has {shortened(found)}"
        )
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be a bcfl.Objective, {name} has {as_given(objective)}")


def _check_tracker(tracker: object) -> None:
    """Check that a tracker has what `bcfl.trackers.Tracker` says."""
    needed = ("candidates_per_parent", "step")
    lacks = [name for name in needed if not hasattr(tracker, name)]
    if isinstance(tracker, type) or lacks or not callable(getattr(tracker, "step", None)):
        found = f", which has no `{lacks[0]}`" if len(lacks) == 1 else ""
        raise TypeError(
            "tracker must be a tracker with `candidates_per_parent` and `step`, such as "
            f"bcfl.trackers.Greedy(), got {as_given(tracker)}{found}"
        )
    number = getattr(tracker, "candidates_per_parent", None)
    if number is not None and not is_whole(number, 1):
        raise ValueError(
            "candidates_per_parent must be a whole number of at least 1, or None for all, "
            f"{type(tracker).__name__} has {shortened(number)}"
        )
