"""Calibration and detection scores of the methods of a run folder, with and without tuning."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import get_args

from bcfl import PredictionRule, Run
from bcfl.analysis import TrueGroups, pairs
from bcfl.protocol import PredictiveName
from experiments.config.options import chosen
from experiments.runs.files import Pair
from experiments.runs.index import Contents, read_contents, read_index
from experiments.runs.restore import newest_state, restore, setup_of
from experiments.scores.client_predictions import Predicted
from experiments.scores.uncertainty_evaluation import By, UncertaintyEvaluation, joined, scores

PLAIN = PredictionRule(predictive="plug-in")
UNSUITED: Mapping[str, tuple[PredictiveName, ...]] = {
    "categorical": (),
    "bernoulli": ("bridge",),
    "gaussian": ("probit", "bridge"),
}
"""Predictives that are of other things than a likelihood's."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """Scores of one method with one seed and one rule.

    Attributes:
        pair: method and seed.
        rule: how predictions were made.
        tuned: whether prior precision and temperature were tuned.
        parts: scores by name for each part of the clients.
        predictions: predictions of all clients.
        association: scores of the pairs of clients, see `bcfl.analysis.pairs`; they do not depend
            on the rule.
        finetunes: whether clients fine-tune the models of the method, which is not scored here.
        time_step: of the samples that are scored, from 0.
        num_steps: time steps of the data.
        has_concepts: whether true groups are concepts, which change from one time step to another.
    """

    pair: Pair
    rule: PredictionRule
    tuned: bool
    parts: Mapping[str, Mapping[str, float]]
    predictions: Predicted
    association: Mapping[str, float] = field(default_factory=dict)
    finetunes: bool = False
    time_step: int = 0
    num_steps: int = 1
    has_concepts: bool = False

    @property
    def label(self) -> str:
        """Kind of predictive distribution, and whether it was tuned."""
        return f"{self.rule.predictive}{', tuned' if self.tuned else ''}"


@dataclass(frozen=True)
class Query:
    """Which methods and predictive distributions of a run are evaluated.

    Attributes:
        methods: names of methods; all methods of the run if empty.
        predictives: predictive distributions evaluated in addition to the untuned plug-in softmax.
        by: how clients are grouped for scoring.
        tunes: whether prior precision and temperature are tuned.
    """

    methods: Sequence[str] = ()
    predictives: Sequence[PredictiveName] = ("plug-in", "linearised")
    by: By = "all"
    tunes: bool = True

    @property
    def rules(self) -> list[PredictionRule]:
        """Prediction rules in addition to the plain one, before tuning."""
        rules = [replace(PLAIN, predictive=name) for name in dict.fromkeys(self.predictives)]
        return rules if self.tunes else [rule for rule in rules if rule != PLAIN]


def evaluate_run(folder: Path, query: Query) -> Iterator[Result]:
    """Evaluate the newest checkpoint of each method and seed.

    Rules that need curvature are skipped for methods whose posteriors have none, and those of
    classes for models of labels or numbers.

    Args:
        folder: folder of the run.
        query: methods and prediction rules to evaluate.

    Raises:
        ValueError: a method is unknown, no checkpoint is there, or no client has two test samples.
        MetricsError: all of the methods are damaged.

    Warns:
        DamagedRunWarning: a method and seed is damaged, and left out.
    """
    index = read_index(folder)
    for name in query.methods:
        chosen("method of this run", name, dict.fromkeys(index.methods))
    methods = query.methods or index.methods
    damaged = Contents.of(folder).damaged
    pairs = [pair for pair in index.pairs if pair.method in methods]
    if all(pair in damaged for pair in pairs):
        raise damaged[pairs[0]]
    read_contents(folder)
    experiment, any_checkpoint = setup_of(folder), False
    for pair in (pair for pair in pairs if pair not in damaged):
        if newest_state(folder, pair) is None:
            continue
        restored = restore(folder, pair, experiment)
        evaluation = UncertaintyEvaluation(restored.run, restored.clients, pair.seed)
        if not evaluation.tested:
            raise ValueError("no client has two test samples, one to tune with and one to score")
        any_checkpoint = True
        finetunes = restored.federation.method.finetuned is not None
        for result in _results(evaluation, pair, query):
            yield replace(result, finetunes=finetunes)
    if not any_checkpoint:
        raise ValueError(f"there is no checkpoint of {', '.join(methods)} in {folder}")


def finetuning_notes(results: Sequence[Result]) -> list[str]:
    """A note on each method whose clients fine-tune: here the models are scored before that."""
    return [
        f"{method}: scored are the models of the clusters, before clients fine-tune them; the "
        "report and `bcfl compare` score the fine-tuned models"
        for method in dict.fromkeys(r.pair.method for r in results if r.finetunes)
    ]


def worded(text: str, results: Sequence[Result]) -> str:
    """A text on groups, which speaks of concepts where results are of those.

    Args:
        text: with `true group` or `group` for what clients of one kind of data are.
        results: of a run.
    """
    if not any(result.has_concepts for result in results):
        return text
    return text.replace("true group", "concept").replace("group", "concept")


def step_notes(results: Sequence[Result]) -> list[str]:
    """A note on the time step whose samples are scored, where the data have several."""
    of_step: dict[int, dict[str, None]] = {}
    for result in results:
        if result.num_steps > 1:
            of_step.setdefault(result.time_step, {})[str(result.pair)] = None
    return [
        ("" if len(of_step) == 1 else f"{', '.join(pairs)}: ")
        + worded(
            f"scored on the test samples and the true groups of time step {step}, that of the last "
            f"round (there are {results[0].num_steps}, counted from 0)",
            results,
        )
        for step, pairs in sorted(of_step.items())
    ]


def _results(evaluation: UncertaintyEvaluation, pair: Pair, query: Query) -> Iterator[Result]:
    yield _result(evaluation, pair, PLAIN, query.by, tuned=False)
    curved = any(p.curved for hypothesis in evaluation.run.hypotheses for p in hypothesis.clusters)
    likelihood = evaluation.run.model.likelihood
    for rule in query.rules:
        fits = rule.predictive not in UNSUITED[likelihood]
        if fits and (curved or rule.predictive == "plug-in"):
            best = evaluation.tuned(rule) if query.tunes else rule
            yield _result(evaluation, pair, best, query.by, tuned=query.tunes)


def _result(
    evaluation: UncertaintyEvaluation, pair: Pair, rule: PredictionRule, by: By, *, tuned: bool
) -> Result:
    predictions = evaluation.predictions(rule)
    parts, groups = scores(predictions, evaluation.parts(by)), evaluation.run.groups
    return Result(
        pair=pair,
        rule=rule,
        tuned=tuned,
        parts=parts,
        predictions=joined(list(predictions.values())),
        association=_association(evaluation.run),
        time_step=evaluation.time_step,
        num_steps=evaluation.num_steps,
        has_concepts=isinstance(groups, TrueGroups) and groups.change,
    )


def _association(run: Run) -> dict[str, float]:
    groups = [run.groups.get(client) for client in run.clients]
    return pairs.association_scores(run.co_association(), groups)


def named_predictive(name: str) -> PredictiveName:
    """Check the name of a predictive distribution.

    Raises:
        ValueError: the name is unknown.
    """
    return chosen("predictive", name, {known: known for known in get_args(PredictiveName)})


def as_json(results: Sequence[Result]) -> str:
    """All scores as JSON, one object per result and part; null where a score is undefined."""
    rows = [
        {
            "method": result.pair.method,
            "seed": result.pair.seed,
            "predictive": result.rule.predictive,
            "tuned": result.tuned,
            "prior_precision": result.rule.prior_precision,
            "temperature": result.rule.temperature,
            **({"time_step": result.time_step} if result.num_steps > 1 else {}),
            "part": part,
            "scores": _finite(scores),
            "association": _finite(result.association),
        }
        for result in results
        for part, scores in result.parts.items()
    ]
    return json.dumps(rows, indent=1) + "\n"


def _finite(scores: Mapping[str, float]) -> dict[str, float | None]:
    return {k: v if isfinite(v) else None for k, v in scores.items()}
