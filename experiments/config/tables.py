"""The tables of a scenario: data, choices by name, training, rules of the federation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from bcfl.methods import COMBINATORS

WARM_UP = "warm_up_rounds"


@dataclass(frozen=True)
class Data:
    """Where the samples come from.

    Attributes:
        dataset: name of a data set, or path of an `.npz` file or of a folder of images or IDX
            files.
        data_dir: folder that is searched first.
        highest: inputs of a file or folder of your own are divided by this number.
        scaled: whether inputs of a file or folder of your own are scaled; otherwise they are kept.
            By default as an `.npz` file says, and else true.
    """

    dataset: str
    data_dir: str | None = None
    highest: float | None = None
    scaled: bool | None = None

    @property
    def scaling(self) -> dict[str, Any]:
        """How inputs are scaled, as keywords of `experiments.datasets.load`."""
        given = {"highest": self.highest, "scaled": self.scaled}
        return {key: value for key, value in given.items() if value is not None}

    def table(self) -> dict[str, Any]:
        """Keys and values as in TOML and JSON, without defaults."""
        return {
            entry.name: value
            for entry in fields(self)
            if (value := getattr(self, entry.name)) != entry.default
        }


@dataclass(frozen=True)
class Choice:
    """A component built by name: the partition or the model.

    Attributes:
        name: of the component.
        options: its keyword arguments.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Training:
    """Local training; see `bcfl.Objective`.

    Attributes:
        local_steps: SGD steps per round.
        local_epochs: passes over a client's samples in place of the steps; `none` is the steps.
        batch_size: samples per step.
        learning_rate: step size.
        momentum: classical momentum.
        weight_decay: factor of the parameters in the gradient.
        prior_weight: weight of the prior in the training loss.
        curvature_samples: most samples for the curvature; `none` is all.
    """

    local_steps: int = 10
    local_epochs: float | None = None
    batch_size: int = 32
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    prior_weight: float = 0.0
    curvature_samples: int | None = 128


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Settings of the whole federation; table `[federation]`.

    Attributes:
        rounds: rounds of every method.
        client_fraction: share of the clients that participate in a round, in (0, 1].
        drop_out: probability that a participant drops out of a round.
        checkpoint_every: rounds between checkpoints.
        beliefs: whether clients score all clusters once more at checkpoints and after the last
            round, for membership probabilities; false where they send trained models only.
        objectives: whether the objectives of clustering and learning, clusterability and bounds of
            the step size are measured in each round.
        options: values of options, such as `num_clusters`, for all methods that have them; what
            `[methods.NAME]` says counts more.
    """

    rounds: int = 25
    client_fraction: float = 1.0
    drop_out: float = 0.0
    checkpoint_every: int = 5
    beliefs: bool = True
    objectives: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("rounds", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.client_fraction <= 1:
            raise ValueError(f"client_fraction must lie in (0, 1], got {self.client_fraction}")
        if not 0 <= self.drop_out <= 1:
            raise ValueError(f"drop_out must lie between 0 and 1, got {self.drop_out}")

    def with_options(self, **options: Any) -> Rules:  # noqa: ANN401 - checked by each method
        """The same with further options for all methods that have them."""
        return replace(self, options={**self.options, **options})

    def lasting(self, rounds: int) -> Rules:
        """The same with another number of rounds; the warm-up keeps its share of them.

        Raises:
            ValueError: the number is below 1.
        """
        if rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {rounds}")
        usual = COMBINATORS["w"].options[WARM_UP].default
        now = self.options.get(WARM_UP, usual)
        later = max(round(now * rounds / self.rounds), min(now, 1)) if now >= 1 else now
        lasting = replace(self, rounds=rounds)
        return lasting if later == now else lasting.with_options(**{WARM_UP: later})
