"""The state of a federation between rounds, and the record of a round."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.data.streams import Schedule
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.history import Snapshot
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.hypotheses.posterior import Posterior, from_initial
from bcfl.protocol.answers import ClientInfo
from bcfl.protocol.requests import Request
from bcfl.protocol.statistics.label_predictions import LabelSums
from bcfl.protocol.statistics.loss import LossSum
from bcfl.protocol.statistics.predictions import PredictionSums
from bcfl.protocol.statistics.regression import RegressionSums
from bcfl.rounds.ledger import Cached, Ledger
from bcfl.rounds.method import Method
from bcfl.runtime import is_whole
from bcfl.runtime.seeds import derive_seed, lineage_key
from bcfl.runtime.suggestions import counted
from bcfl.trackers import TrackerInfo
from posteriors.curvature.likelihood import Likelihood


class OtherMethodWarning(UserWarning):
    """A run goes on with another method than the one with which it began."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a run began with; empty where it is not known.

    Attributes:
        method: name of the method.
        policy: kind of the policy, and its number of clusters.
        seed: of all randomness.
    """

    method: str = ""
    policy: str = ""
    seed: int | None = None

    @classmethod
    def of(cls, method: Method, num_clients: int, seed: int) -> Origin:
        """The origin of a run.

        Args:
            method: the method.
            num_clients: clients of the federation.
            seed: of all randomness.
        """
        number = method.first_clusters(num_clients)
        policy = f"{type(method.policy).__name__} with {number} cluster{'s' * (number > 1)}"
        return cls(method=method.name, policy=policy, seed=seed)

    def told(self, other: Origin) -> str:
        """The method by its name, and its clusters; the policy where names do not tell them apart.

        Args:
            other: that it is told apart from.
        """
        kind, _, number = self.policy.partition(" with ")
        if not self.method:
            return self.policy
        if self.method == other.method and kind != other.policy.partition(" with ")[0]:
            return f"method {self.method!r} ({self.policy})"
        return f"method {self.method!r} with {number}"


@dataclass(frozen=True, eq=False, kw_only=True)
class FederationState:
    """All that the next round depends on, besides the fixed set-up.

    Attributes:
        hypotheses: the association hypotheses with their models.
        history: associations and weights of all rounds so far.
        client_info: description of each client so far.
        scores: reported losses of models that have not changed since.
        planned_rounds: rounds of the whole run, by which schedules scale; None before it begins.
        cached: client and key of blocks that they keep, see `bcfl.rounds.Ledger.bytes_down`.
        releases: of each client so far, see `bcfl.rounds.Ledger.releases`.
        origin: what the run began with.
    """

    hypotheses: HypothesisSet
    history: tuple[Snapshot, ...] = ()
    client_info: Mapping[str, ClientInfo] = field(default_factory=dict)
    scores: Mapping[Request, LossSum] = field(default_factory=dict)
    planned_rounds: int | None = None
    cached: frozenset[Cached] = frozenset()
    releases: Mapping[str, int] = field(default_factory=dict)
    origin: Origin = Origin()

    @property
    def most_releases(self) -> int:
        """Largest number of releases of a client so far, by which its privacy is counted."""
        return max(self.releases.values(), default=0)

    def __repr__(self) -> str:
        return f"FederationState({self.hypotheses!r})"

    @property
    def round(self) -> int:
        """Rounds done."""
        return self.hypotheses.round

    def time_step(self, clients: Sequence[ClientData]) -> int:
        """Time step of the last round, from 0; that of the start before the first round.

        Args:
            clients: with the data of all time steps.
        """
        planned = self.planned_rounds or self.round
        return Schedule.of(clients, planned).step(self.round - 1) if self.round else 0

    def check_continues(
        self, clients: Sequence[str], num_parameters: int, dtype: torch.dtype, origin: Origin
    ) -> None:
        """Check that a federation can go on from this state.

        Args:
            clients: its clients, sorted by name.
            num_parameters: parameters of its network.
            dtype: of these.
            origin: what a run of the federation begins with.

        Raises:
            ValueError: the state is of other clients, of another network, of another dtype, of
                another seed or of another kind of policy.

        Warns:
            OtherMethodWarning: the method has another name.
        """
        leading = self.hypotheses.best
        if leading.association.clients != tuple(clients):
            other = sorted(set(leading.association.clients) ^ set(clients))[:5]
            raise ValueError(f"state must be one of these clients, it differs in {other}")
        sizes = {posterior.num_parameters for posterior in leading.clusters}
        if sizes != {num_parameters}:
            raise ValueError(
                f"state must be of models with {num_parameters} parameters, as the federation's "
                f"network has, got {', '.join(map(str, sorted(sizes)))}"
            )
        found = leading.clusters[0].blocks[0].gaussian.mean.dtype
        if found != dtype:
            raise ValueError(f"state must be of {dtype}, the federation's dtype, got {found}")
        begun = self.origin
        if begun.policy not in ("", origin.policy):
            raise ValueError(
                f"state must be of {origin.told(begun)}, got one of {begun.told(origin)}"
            )
        if begun.seed not in (None, origin.seed):
            raise ValueError(
                f"state must be of seed {origin.seed}, that of the federation, got one of seed "
                f"{begun.seed}"
            )
        if begun.method not in ("", origin.method):
            warnings.warn(
                f"a state of {begun.method!r} goes on as {origin.method!r}",
                OtherMethodWarning,
                stacklevel=5,  # the caller of Federation.run
            )

    def planned(self, rounds: int, planned: int | None) -> FederationState:
        """The state with the planned number of rounds, which is set once and kept on continuation.

        Args:
            rounds: rounds to do in all, the plan unless another is given.
            planned: rounds that the whole run is planned for.

        Raises:
            ValueError: the plan would be shorter than the rounds, or another one than was made.
        """
        if self.planned_rounds is None:
            if planned is not None and not is_whole(planned, rounds):
                raise ValueError(
                    f"planned_rounds must be a whole number of at least the {rounds} rounds, got "
                    f"{planned!r}"
                )
            return replace(self, planned_rounds=rounds if planned is None else planned)
        if planned not in (None, self.planned_rounds):
            raise ValueError(
                f"planned_rounds must be {self.planned_rounds}, for which the first "
                f"{self.round} rounds of this run were planned, got {planned!r}; leave it out to "
                "keep the plan, or begin anew"
            )
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundRecord:
    """The outcome of a round; logged, not part of the state.

    Attributes:
        round: rounds done, this one included.
        participants: clients that took part; failed requests are in `ledger.failures`.
        snapshot: associations and weights after the round.
        likelihood: of the model, which says what was predicted.
        evaluations: predictions of each client's served mixture on its test samples; clients
            without test samples, or that did not answer, are left out.
        regression: the same of numbers, where the likelihood is Gaussian.
        labels: the same of labels, where it is Bernoulli.
        info: what the tracker did.
        ledger: what the round cost.
        belief_ledger: what recording beliefs cost, apart from the round; None where none were.
        num_training: training samples of each client that has described itself so far.
    """

    round: int
    participants: tuple[str, ...]
    snapshot: Snapshot
    evaluations: Mapping[str, PredictionSums]
    info: TrackerInfo
    ledger: Ledger
    belief_ledger: Ledger | None = None
    regression: Mapping[str, RegressionSums] = field(default_factory=dict)
    labels: Mapping[str, LabelSums] = field(default_factory=dict)
    num_training: Mapping[str, int] = field(default_factory=dict)
    likelihood: Likelihood = "categorical"

    def __repr__(self) -> str:
        return (
            f"RoundRecord(round {self.round}, {counted(len(self.participants), 'participant')}, "
            f"{counted(len(self.snapshot.associations), 'hypothesis', 'hypotheses')}, "
            f"{self.ledger.trainings_run} of "
            f"{counted(self.ledger.trainings_requested, 'training')}, "
            f"{counted(len(self.ledger.failures), 'failure')})"
        )

    @property
    def predicted(self) -> Mapping[str, Any]:
        """Sums over each client's predictions on its test samples, of the model's likelihood."""
        match self.likelihood:
            case "categorical":
                return self.evaluations
            case "gaussian":
                return self.regression
            case "bernoulli":
                return self.labels

    def failures_of(self, client: str) -> list[str]:
        """What a client failed to do, a sentence each.

        Args:
            client: its name.
        """
        return [text for text in self.ledger.failures if text.startswith(f"{client}: ")]


def initial_state(
    method: Method,
    model: Model,
    clients: Sequence[str],
    seed: int,
    device: torch.device,
    dtype: torch.dtype,
) -> FederationState:
    """The state before round 1: no client associated, clusters at newly initialised networks.

    There are `method.starts` equally probable hypotheses, each with networks of its own.

    Args:
        method: gives the number of clusters and of initial hypotheses.
        model: architecture.
        clients: names of the clients, sorted.
        seed: of the initial networks.
        device: of the parameters.
        dtype: of the parameters.
    """
    num_clusters = method.first_clusters(len(clients))
    networks = 1 if method.common_start else num_clusters
    association = Association.unseen(clients, num_clusters)
    hypotheses = []
    for start in range(method.starts):
        born = []
        for index in range(start * networks, (start + 1) * networks):
            mean, buffers = model.initial(derive_seed(seed, "initial", index))
            key = lineage_key("birth", seed, index, _identity(model), method.prior_precision)
            mean, buffers = mean.to(device, dtype), buffers.to(device, dtype)
            born.append(from_initial(model, key, mean, buffers, method.prior_precision))
        born = _sharing_global_blocks(model, born)
        clusters = tuple(born[index % networks] for index in range(num_clusters))
        hypotheses.append(Hypothesis(clusters=clusters, association=association))
    return FederationState(
        hypotheses=HypothesisSet.weighted(hypotheses, 0, 0.0),
        origin=Origin.of(method, len(clients), seed),
    )


def _identity(model: Model) -> str:
    """A model in keys, from which random draws derive; another text gives other results."""
    sizes = f"{model.input_shape} -> {model.num_outputs}"
    return f"Model({model.name}: {sizes}, {model.layout.num_parameters} parameters)"


def _sharing_global_blocks(model: Model, born: list[Posterior]) -> list[Posterior]:
    """The posteriors with the first one's blocks of global scope, which are one object in all."""
    common = {spec.name: born[0] for spec in model.blocks if spec.scope == "global"}
    return [posterior.with_blocks(common) for posterior in born] if common else born
