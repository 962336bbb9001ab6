"""Trials of all methods of a run folder, with plain and with tuned predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import get_args

from bcfl import PredictionRule
from bcfl.analysis.predictions import PredictiveName
from experiments.config.options import chosen
from experiments.config.variants import Pair
from experiments.runs.plan import read_plan
from experiments.runs.restore import newest_state, restore
from experiments.runs.runner import Experiment
from experiments.scores.trial import By, ClientPredictions, UncertaintyEvaluation, scores

PLAIN = PredictionRule("plug-in")


@dataclass(frozen=True, eq=False)
class Result:
    """Scores of one method with one seed and one rule.

    Attributes:
        pair: method and seed.
        rule: how predictions were made.
        tuned: whether prior precision and temperature were tuned.
        parts: scores by name, for each part of the clients.
        outcome: all predictions.
    """

    pair: Pair
    rule: PredictionRule
    tuned: bool
    parts: Mapping[str, Mapping[str, float]]
    outcome: ClientPredictions

    @property
    def label(self) -> str:
        """The kind of prediction."""
        return f"{self.rule.predictive}{', tuned' if self.tuned else ''}"


@dataclass(frozen=True)
class Query:
    """What is to be found out about a run.

    Attributes:
        methods: names; all of the run if empty.
        predictives: kinds of prediction beside the plain softmax.
        by: how clients are put together.
        tunes: whether prior precision and temperature are tuned.
    """

    methods: Sequence[str] = ()
    predictives: Sequence[PredictiveName] = ("plug-in", "linearised")
    by: By = "all"
    tunes: bool = True

    @property
    def rules(self) -> list[PredictionRule]:
        """Rules beside the plain one, not tuned yet."""
        every = [replace(PLAIN, predictive=name) for name in dict.fromkeys(self.predictives)]
        return every if self.tunes else [rule for rule in every if rule != PLAIN]


def study(folder: Path, question: Query) -> Iterator[Result]:
    """Try the newest checkpoint of each method and seed.

    Rules that need curvature are left out for methods that have none.

    Args:
        folder: folder of the run.
        question: what to try.

    Raises:
        ValueError: a method is unknown, no checkpoint is there, or no client has two test samples.
    """
    scenario = read_plan(folder).scenario
    for name in question.methods:
        chosen("method of this run", name, dict.fromkeys(scenario.methods))
    wanted = question.methods or scenario.methods
    setup, found = Experiment(scenario, "cpu"), False
    for pair in (pair for pair in scenario.pairs if pair.method in wanted):
        if newest_state(folder, pair) is None:
            continue
        restored = restore(folder, pair, setup)
        trial = UncertaintyEvaluation(restored.run, restored.clients, pair.seed)
        if not trial.divided:
            raise ValueError("no client has two test samples, one to tune with and one to score")
        found = True
        yield from _findings(trial, pair, question)
    if not found:
        raise ValueError(f"there is no checkpoint of {', '.join(wanted)} in {folder}")


def _findings(trial: UncertaintyEvaluation, pair: Pair, question: Query) -> Iterator[Result]:
    yield _finding(trial, pair, PLAIN, question.by, tuned=False)
    curved = any(p.curved for hypothesis in trial.run.hypotheses for p in hypothesis.clusters)
    for rule in question.rules:
        if curved or rule.predictive == "plug-in":
            best = trial.tuned(rule) if question.tunes else rule
            yield _finding(trial, pair, best, question.by, tuned=question.tunes)


def _finding(
    trial: UncertaintyEvaluation, pair: Pair, rule: PredictionRule, by: By, *, tuned: bool
) -> Result:
    outcomes = trial.outcomes(rule)
    parts = scores(outcomes, trial.parts(by))
    return Result(pair, rule, tuned, parts, ClientPredictions.joined(list(outcomes.values())))


def named_predictive(name: str) -> PredictiveName:
    """The kind of prediction of a name.

    Raises:
        ValueError: there is none.
    """
    return chosen("predictive", name, {known: known for known in get_args(PredictiveName)})


def as_json(findings: Sequence[Result]) -> str:
    """All numbers for programs; null where a score is not known."""
    rows = [
        {
            "method": one.pair.method,
            "seed": one.pair.seed,
            "predictive": one.rule.predictive,
            "tuned": one.tuned,
            "prior_precision": one.rule.prior_precision,
            "temperature": one.rule.temperature,
            "part": part,
            "scores": {k: v if isfinite(v) else None for k, v in found.items()},
        }
        for one in findings
        for part, found in one.parts.items()
    ]
    return json.dumps(rows, indent=1) + "\n"
