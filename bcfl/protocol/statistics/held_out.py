"""Log losses of held-out samples over a grid of prior precisions and temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, pi
from typing import ClassVar

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.view import View
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.checks import is_count
from bcfl.protocol.prediction_rule import PredictionRule, moments_of_all
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, PosteriorStatistic
from posteriors import Linearised, Predictive
from posteriors.predictive import (
    ClosedForm,
    HeldOutSums,
    TuningGrid,
    absent_and_present,
    link_logits,
)
from posteriors.predictive.predictive import outputs_of_all


@dataclass(frozen=True)
class HeldOutLosses(PosteriorStatistic):
    """How the mixture of the posteriors predicts at each point of a grid: `HeldOutSums`.

    Attributes:
        weights: mixture weight of each posterior, summing to 1.
        rule: how a posterior becomes a prediction; its prior precision and temperature are replaced
            by those of the grid.
        grid: values to try.
    """

    weights: tuple[float, ...]
    rule: PredictionRule
    grid: TuningGrid
    name: ClassVar[str] = "held_out"
    reads_precision: ClassVar[bool] = True

    def fits(self, model: Model, num_models: int) -> bool:
        """One weight for each model; see `bcfl.protocol.Statistic.fits`."""
        return 0 < num_models == len(self.weights)

    def of_posteriors(
        self, posteriors: Sequence[Posterior], model: Model, view: View
    ) -> HeldOutSums:
        """See `bcfl.protocol.statistics.statistic.PosteriorStatistic.of_posteriors`.

        Raises:
            ValueError: the posteriors hold no curvature, and the predictive needs it.
        """
        if model.likelihood == "gaussian":
            rows = self._of_numbers(posteriors, model, view)
            return HeldOutSums(self.grid, torch.stack(rows).cpu(), len(view))
        targets = view.targets.long().unsqueeze(-1)
        rows = []
        for members in self._members(posteriors, model, view.inputs):
            chosen = [
                self._averaged(members, temperature).gather(-1, targets).flatten(1)
                for temperature in self.grid.temperatures
            ]
            rows.append(-torch.stack(chosen).sum((1, 2)))
        return HeldOutSums(self.grid, torch.stack(rows).cpu(), len(view))

    def _of_numbers(
        self, posteriors: Sequence[Posterior], model: Model, view: View
    ) -> list[Tensor]:
        """By prior precision, (temperatures,) log losses of Gaussians of the mixture's moments."""
        rules = [replace(self.rule, prior_precision=p) for p in self.grid.prior_precisions]
        mixture = dict(zip(posteriors, self.weights, strict=True))
        losses = []
        for moments in moments_of_all(rules, model, mixture, view.inputs):
            errors = view.targets.to(moments.mean).reshape(moments.mean.shape) - moments.mean
            noise = errors.new_tensor(self.grid.temperatures).reshape(-1, 1, 1)
            variance = noise + moments.model_variance + moments.association_variance
            each = errors**2 / variance + (2 * pi * variance).log()
            losses.append(0.5 * each.sum((1, 2)))
        return losses

    def _members(
        self, posteriors: Sequence[Posterior], model: Model, inputs: Tensor
    ) -> list[list[Tensor]]:
        """By prior precision and posterior, (draws, samples, classes) logits.

        Those of labels are (draws, samples, labels, 2), of absence and presence.
        """
        rules = [replace(self.rule, prior_precision=p) for p in self.grid.prior_precisions]
        generators = [rule.generator for rule in rules]
        by_rule: list[list[Tensor]] = [[] for _ in rules]
        classes = model.likelihood == "categorical"
        for posterior in posteriors:
            predictives = [rule.of_logits(model, posterior) for rule in rules]
            drawn = _drawn(predictives, self.rule.num_draws, generators, inputs)
            for place, members in zip(by_rule, drawn, strict=True):
                place.append(members if classes else absent_and_present(members))
        return by_rule

    def _averaged(self, members: Sequence[Tensor], temperature: float) -> Tensor:
        """(samples, ..., classes) log probabilities of the mixture of tempered networks."""
        parts = []
        for weight, logits in zip(self.weights, members, strict=True):
            logs = (logits / temperature).log_softmax(-1)
            share = weight / len(logits)
            parts.append(logs.logsumexp(0) + (log(share) if share else -inf))
        return torch.stack(parts).logsumexp(0).clamp(max=0)

    def num_bytes(self, model: Model, num_models: int) -> int:
        """A number for each point of the grid, and a number of samples.

        See `bcfl.protocol.Statistic.num_bytes`.
        """
        points = len(self.grid.prior_precisions) * len(self.grid.temperatures)
        return NUMBER_BYTES * (points + 1)

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        if not isinstance(part, HeldOutSums) or not is_count(part.num_samples):
            return "no held-out sums"
        shape = len(self.grid.prior_precisions), len(self.grid.temperatures)
        tensor = isinstance(part.log_loss, Tensor) and part.log_loss.is_floating_point()
        if part.grid != self.grid or not tensor or tuple(part.log_loss.shape) != shape:
            return "held-out sums over another grid"
        losses = part.log_loss >= (-inf if model.likelihood == "gaussian" else 0)
        finite = bool((part.log_loss.isfinite() & losses).all())
        return "" if finite else "held-out sums that are no losses"


def _drawn(
    predictives: Sequence[Predictive],
    num_draws: int,
    generators: Sequence[torch.Generator],
    inputs: Tensor,
) -> list[Tensor]:
    """Logits of the members of predictives around one mean; linear ones share their Jacobians."""
    linear = [predictive for predictive in predictives if isinstance(predictive, Linearised)]
    if len(linear) == len(predictives):
        outputs = outputs_of_all(linear, inputs)
        pairs = zip(outputs, generators, strict=True)
        return [predictive.sample(num_draws, generator) for predictive, generator in pairs]
    closed = [predictive.linear for predictive in predictives if isinstance(predictive, ClosedForm)]
    if len(closed) == len(predictives):
        moments = zip(outputs_of_all(closed, inputs), closed, strict=True)
        return [
            link_logits(predictive.link, f.mean, f.covariance).unsqueeze(0)
            for f, predictive in moments
        ]
    pairs_of_any = zip(predictives, generators, strict=True)
    return [
        predictive.member_logits(inputs, num_draws, generator)
        for predictive, generator in pairs_of_any
    ]
