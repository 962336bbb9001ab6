"""The interface of statistics: computation by the client, checks and payload by the server.

A statistic is a frozen dataclass in a file of this folder that is named like it. It inherits from
one of three classes, by what it is computed from:

- `OutputStatistic`: from the networks' outputs, sample by sample; executors compute these in
  mini-batches, and for many clients and models at a time.
- `NetworkStatistic`: from one network and all samples.
- `PosteriorStatistic`: from the posteriors over several networks and all samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.data.view import View
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.statistics.sample_values import SampleValues

NUMBER_BYTES = 8
FLOAT_BYTES = 4


class Statistic(ABC):
    """A summary of models on one view of a client's samples; equal by value.

    Attributes:
        name: that of the file which defines it.
        elementwise: whether each model is reported on its own, so that answers about single models
            are shared between requests; the answer is then a mapping from model keys.
        lasting: whether an answer is kept for later rounds, while the models and data are the same;
            checkpoints hold it, so it must be a `LossSum` for each model.
        reads_precision: whether clients must be sent the models' precisions as well as their means.
    """

    name: ClassVar[str]
    elementwise: ClassVar[bool] = False
    lasting: ClassVar[bool] = False
    reads_precision: ClassVar[bool] = False

    def fits(self, model: Model, num_models: int) -> bool:
        """Whether it is defined for so many models of an architecture.

        Args:
            model: architecture of the models.
            num_models: number of models in the request.
        """
        del model
        return num_models > 0

    @abstractmethod
    def num_bytes(self, model: Model, num_models: int) -> int:
        """Payload of the answer, bytes.

        Args:
            model: architecture of the models.
            num_models: number of models in the request.
        """

    @abstractmethod
    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """Why an answer is invalid, as text; empty if it is valid.

        Args:
            part: the answer; of an elementwise statistic, that for one model.
            model: the architecture.
            num_models: how many models the answer is about.
        """

    def trouble(self, answer: object, model: Model, keys: Sequence[str]) -> str:
        """Why the answer about some models is invalid.

        See `bcfl.protocol.Statistic.part_trouble`.
        """
        if not self.elementwise:
            return self.part_trouble(answer, model, len(keys))
        if not isinstance(answer, dict) or set(answer) != set(keys):
            return "scores of other models than requested"
        troubles = (self.part_trouble(part, model, 1) for part in answer.values())
        return next((trouble for trouble in troubles if trouble), "")


class OutputStatistic(Statistic):
    """A statistic of the networks' outputs on each sample.

    Attributes:
        batched: whether it may be computed from outputs that differ by rounding from those of one
            network evaluated alone, as batched executors give them.
        reads_targets: whether `combined` uses the targets; batched executors gather none otherwise.
    """

    batched: ClassVar[bool] = True
    reads_targets: ClassVar[bool] = True

    @property
    @abstractmethod
    def values(self) -> SampleValues:
        """Values per sample; statistics with equal ones share the evaluation."""

    @abstractmethod
    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> Any:  # noqa: ANN401 - each statistic has its own kind of answer
        """The answer from the values of all scored samples.

        Args:
            values: for each model, (samples, ...) of the samples that were scored; a single one
                where the statistic is elementwise.
            targets: (samples,) of these samples; empty unless `reads_targets`.
            num_samples: of the whole view, of which a subset may have been scored.
        """


class NetworkStatistic(Statistic):
    """A statistic of one network and all samples, at full precision; always elementwise."""

    elementwise: ClassVar[bool] = True

    @abstractmethod
    def of_network(self, network: nn.Module, model: Model, view: View, num_samples: int) -> Any:  # noqa: ANN401 - each statistic has its own kind of answer
        """The answer for one model.

        Args:
            network: in evaluation mode, at the model's mean.
            model: its architecture.
            view: the samples that are scored.
            num_samples: of the whole view, of which `view` may be a subset.
        """


class PosteriorStatistic(Statistic):
    """A statistic of several posteriors together, at full precision."""

    @abstractmethod
    def of_posteriors(self, posteriors: Sequence[Posterior], model: Model, view: View) -> Any:  # noqa: ANN401 - each statistic has its own kind of answer
        """The answer for all models together.

        Args:
            posteriors: in the order in which the request names them.
            model: the architecture.
            view: the samples that are scored.
        """


def to_numbers(statistic: Statistic) -> dict[str, Any]:
    """A statistic as its name and hyperparameters, serialisable as JSON."""
    return {"name": statistic.name, **asdict(statistic)}  # type: ignore[call-overload]


def of_numbers(numbers: Mapping[str, Any]) -> Statistic:
    """The inverse of `to_numbers`.

    Raises:
        ValueError: there is no statistic of that name.
    """
    name, package = numbers["name"], __name__.rpartition(".")[0]
    known = [module.name for module in iter_modules(import_module(package).__path__)]
    members = vars(import_module(f"{package}.{name}")).values() if name in known else ()
    kinds = [kind for kind in members if isinstance(kind, type) and issubclass(kind, Statistic)]
    for kind in kinds:
        if getattr(kind, "name", None) == name:
            statistic: Statistic = _of_fields(
                kind, {k: v for k, v in numbers.items() if k != "name"}
            )
            return statistic
    raise ValueError(f"statistic must be one of bcfl.protocol.statistics, got {name!r}")


def _of_fields(kind: Any, numbers: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in numbers.items()})


def _value(kind: Any, value: Any) -> Any:  # noqa: ANN401 - numbers, text, tuples, dataclasses
    if is_dataclass(kind):
        return _of_fields(kind, value)
    return tuple(value) if isinstance(value, list) else value
