"""The prior precision and temperature of a prediction rule, from sums over held-out samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bcfl.analysis.predictions import PredictionRule, fitting
from bcfl.architecture.model import Model
from bcfl.data.clients import View
from bcfl.hypotheses.posterior import Posterior
from posteriors import Linearised, Predictive
from posteriors.predictive import ClosedForm, HeldOutSums, TuningGrid, apply_link, choose, temper
from posteriors.predictive.predictive import outputs_of_all

GRID = TuningGrid(prior_precisions=tuple(10.0**i for i in range(-1, 7)))


def tuned(
    rule: PredictionRule,
    model: Model,
    held_out: Sequence[tuple[Mapping[Posterior, float], View]],
    grid: TuningGrid = GRID,
) -> PredictionRule:
    """The rule with the prior precision and temperature that held-out samples ask for.

    See `posteriors.predictive.choose`.

    Args:
        rule: says which predictive; a `plug-in` has no use for a prior precision.
        model: the architecture, a classifier.
        held_out: for each client, the mixture that serves it and its samples.
        grid: values to try.

    Raises:
        ValueError: there are no samples, or they do not fit the model.
    """
    if rule.predictive == "plug-in":
        grid = replace(grid, prior_precisions=grid.prior_precisions[:1])
    totals = [
        _client_sums(rule, model, mixture, view, grid)
        for mixture, view in _by_mixture(held_out)
        if len(view)
    ]
    if not totals:
        raise ValueError("held-out samples must be there to tune with, got none")
    total = totals[0]
    for one in totals[1:]:
        total = total + one
    best = choose(total)
    precision = None if rule.predictive == "plug-in" else best.prior_precision
    return replace(rule, prior_precision=precision, temperature=best.temperature)


def _by_mixture(
    held_out: Iterable[tuple[Mapping[Posterior, float], View]],
) -> list[tuple[Mapping[Posterior, float], View]]:
    """Clients that the same mixture serves, put together."""
    served: dict[tuple[tuple[str, float], ...], list[tuple[Mapping[Posterior, float], View]]] = {}
    for mixture, view in held_out:
        signature = tuple(sorted((posterior.key, share) for posterior, share in mixture.items()))
        served.setdefault(signature, []).append((mixture, view))
    return [
        (
            same[0][0],
            View(
                torch.cat([view.inputs for _, view in same]),
                torch.cat([view.targets for _, view in same]),
            ),
        )
        for same in served.values()
    ]


def _client_sums(
    rule: PredictionRule,
    model: Model,
    mixture: Mapping[Posterior, float],
    view: View,
    grid: TuningGrid,
) -> HeldOutSums:
    """Log losses of samples with one mixture at every point of the grid."""
    inputs = fitting(model, view.inputs, next(iter(mixture)).mean(model))
    targets = view.targets.to(inputs.device).unsqueeze(1)
    rules = [replace(rule, prior_precision=precision) for precision in grid.prior_precisions]
    rows = []
    for members in _members(rules, model, mixture, inputs):
        chosen = [
            _averaged(members, mixture, temperature).gather(1, targets)
            for temperature in grid.temperatures
        ]
        rows.append(-torch.stack(chosen).log().sum((1, 2)))
    return HeldOutSums(grid, torch.stack(rows).cpu(), len(view))


def _members(
    rules: Sequence[PredictionRule], model: Model, mixture: Iterable[Posterior], inputs: Tensor
) -> list[list[Tensor]]:
    """For each rule and posterior, (draws, samples, classes) probabilities, not tempered."""
    generators = [rule.generator for rule in rules]
    found: list[list[Tensor]] = [[] for _ in rules]
    for posterior in mixture:
        every = [rule.untempered(model, posterior) for rule in rules]
        for place, members in zip(found, _drawn(every, rules[0], generators, inputs), strict=True):
            place.append(members)
    return found


def _drawn(
    predictives: Sequence[Predictive],
    rule: PredictionRule,
    generators: Sequence[torch.Generator],
    inputs: Tensor,
) -> list[Tensor]:
    """Members of predictives around one mean; linear ones share their Jacobians."""
    linear = [one for one in predictives if isinstance(one, Linearised)]
    if len(linear) == len(predictives):
        outputs = outputs_of_all(linear, inputs)
        pairs = zip(outputs, generators, strict=True)
        return [one.sample(rule.num_draws, generator).softmax(2) for one, generator in pairs]
    closed = [one.linear for one in predictives if isinstance(one, ClosedForm)]
    if len(closed) == len(predictives):
        found = zip(outputs_of_all(closed, inputs), closed, strict=True)
        return [apply_link(one.link, f.mean, f.covariance).unsqueeze(0) for f, one in found]
    pairs_of_any = zip(predictives, generators, strict=True)
    return [one.members(inputs, rule.num_draws, generator) for one, generator in pairs_of_any]


def _averaged(
    members: Sequence[Tensor], mixture: Mapping[Posterior, float], temperature: float
) -> Tensor:
    """(samples, classes) probabilities of the mixture of tempered networks."""
    means = [temper(group, temperature).mean(0) for group in members]
    weights = mixture.values()
    return torch.stack([w * mean for w, mean in zip(weights, means, strict=True)]).sum(0)
