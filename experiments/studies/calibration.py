"""Calibration and detection of each predictive distribution, with and without tuning.

Every method holds out a fifth of the clients' training samples; prior precision and temperature are
tuned on sums over those, so a tuned `plug-in` is temperature scaling. Scores on test samples:
NLL in nats, expected calibration error, and AUROC of detecting misclassified samples by confidence,
and samples of other groups and noise by their OOD score and by entropy.
Differences are paired with the same method's plain and tuned softmax on the same draws, with one
standard error. `python -m experiments.studies.calibration SEEDS`, 10 by default; see `--help`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import get_args

from rich.console import Console

from bcfl import PredictionRule
from bcfl.protocol import PredictiveName
from bcfl.runtime import device_named, limited_threads
from experiments.config import scenario as scenarios
from experiments.config.command_line import (
    CommandLine,
    accepted,
    method_name,
    one_of,
    positive,
    several,
)
from experiments.config.variants import Pair
from experiments.runs.runner import Experiment
from experiments.scores.uncertainty_evaluation import UncertaintyEvaluation, scores
from posteriors import LocalPosteriorName

METHODS = ("wecfl", "bcfl-g-w", "bcfl-mh-3-w")
SCENARIOS = ("digits-rotated", "digits-label-skew")
ROUNDS = (5, 40, 150)
SHARE, DRAWS = 0.2, 32
POSTERIOR: tuple[PredictiveName, ...] = ("monte-carlo", "probit", "linearised")
SHOWN = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "ece": "ECE",
    "wrong_auroc": "wrong",
    "ood_auroc": "other groups",
    "ood_auroc_entropy": "by entropy",
    "noise_auroc": "noise",
    "noise_auroc_entropy": "by entropy",
}
REFERENCES = {"plain": "plug-in", "tuned": "plug-in, tuned"}
Scored = Mapping[tuple[int, str, str], Mapping[str, float]]


def setup_of(name: str, arguments: argparse.Namespace) -> Experiment:
    """Scenario with held-out training samples; images get a network without BatchNorm.

    Args:
        name: name of the scenario.
        arguments: parsed command line; see `parsed`.
    """
    scenario = scenarios.load(name)
    rules = scenario.federation.with_options(calibration=SHARE, posterior=arguments.posterior)
    model = scenario.model
    if model.name == "fashion-cnn":
        model = replace(model, name="fashion-cnn-gn")
    data = replace(scenario.data, data_dir=arguments.data_dir or scenario.data.data_dir)
    return Experiment(
        scenario=replace(scenario, federation=rules, model=model, data=data),
        device=arguments.device,
    )


def scored(
    setup: Experiment,
    seed: int,
    methods: Sequence[str],
    rounds: Sequence[int],
    kinds: Sequence[PredictiveName] = POSTERIOR,
) -> Scored:
    """Scores by round, method and predictive distribution, for one draw of the clients.

    Args:
        setup: the scenario.
        seed: seed of the draw.
        methods: names of methods.
        rounds: numbers of rounds after which to evaluate, ascending.
        kinds: predictive distributions besides the plug-in, for methods with posteriors.
    """
    return {
        (evaluation.run.state.round, name, label): scores(
            evaluation.predictions(rule), evaluation.parts("all")
        )["all"]
        for name in methods
        for evaluation in evaluations(setup, Pair(name, seed), rounds)
        for label, rule in rules(evaluation, kinds if name.startswith("bcfl") else ())
    }


def evaluations(
    setup: Experiment, pair: Pair, rounds: Sequence[int]
) -> Iterator[UncertaintyEvaluation]:
    """Evaluation of a federation after each number of rounds.

    Args:
        setup: the scenario.
        pair: method and seed.
        rounds: numbers of rounds, ascending.
    """
    federation = setup.federation(pair, evaluate=False)
    state = None
    for stop in rounds:
        run = federation.run(stop, planned_rounds=rounds[-1], state=state)
        state = run.state
        yield UncertaintyEvaluation(run, federation.clients, pair.seed)


def rules(
    evaluation: UncertaintyEvaluation, kinds: Sequence[PredictiveName]
) -> Iterator[tuple[str, PredictionRule]]:
    """Prediction rules before and after tuning, the plain softmax first.

    Args:
        evaluation: evaluation that tunes.
        kinds: predictive distributions besides the plug-in.
    """
    names: tuple[PredictiveName, ...] = ("plug-in", *kinds)
    for kind in names:
        rule = PredictionRule(predictive=kind, num_draws=DRAWS)
        if kind in ("plug-in", "probit"):  # untuned draws are equivalent to `probit` or worse
            yield kind, rule
        yield f"{kind}, tuned", evaluation.tuned(rule)


def tables(draws: Sequence[Scored]) -> Iterator[str]:
    """Markdown table for each number of rounds: means over draws, and paired differences."""
    for stop in dict.fromkeys(rounds for rounds, *_ in draws[0]):
        differences = [f"{s} to {name}" for name in REFERENCES for s in ("NLL", "ECE")]
        head = ["method", "prediction", *SHOWN.values(), *differences, "groups", "noise"]
        lines = [f"**{stop} rounds**", "", _row(head), _row(["---"] * len(head))]
        for key in (key for key in draws[0] if key[0] == stop):
            means = [f"{mean(draw[key][score] for draw in draws):.3f}" for score in SHOWN]
            losses = [
                [draw[key][score] - draw[*key[:2], reference][score] for draw in draws]
                for reference in REFERENCES.values()
                for score in ("nll", "ece")
            ]
            plain = (*key[:2], REFERENCES["plain"])
            detection = [
                [draw[key][f"{s}_auroc"] - draw[plain][f"{s}_auroc_entropy"] for draw in draws]
                for s in ("ood", "noise")
            ]
            lines.append(_row([*key[1:], *means, *map(difference, losses + detection)]))
        yield "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def difference(values: Sequence[float]) -> str:
    """Text of the mean of paired differences with its standard error."""
    if len(values) < 2:
        return f"{values[0]:+.3f}"
    return f"{mean(values):+.3f} ± {stdev(values) / len(values) ** 0.5:.3f}"


def as_json(name: str, draws: Mapping[int, Scored]) -> str:
    """All scores as JSON.

    Args:
        name: name of the scenario.
        draws: scores by seed.
    """
    rows = [
        {"scenario": name, "seed": seed, "rounds": key[0], "method": key[1], "prediction": key[2]}
        | dict(scores)
        for seed, draw in draws.items()
        for key, scores in draw.items()
    ]
    return json.dumps(rows, indent=1) + "\n"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seeds", positive, 10, "number of seeds")
    line.add_argument(
        "--scenario",
        action="append",
        type=accepted(scenarios.load),
        help=f"may be repeated (default: {', '.join(SCENARIOS)})",
    )
    line.argument("--rounds", several(positive), ",".join(map(str, ROUNDS)), "numbers of rounds")
    line.argument("--methods", several(method_name()), ",".join(METHODS), "methods")
    predictive = one_of("predictive", get_args(PredictiveName))
    line.argument(
        "--predictives", several(predictive), ",".join(POSTERIOR), "predictive distributions"
    )
    line.argument(
        "--posterior", str, "laplace-diag", "local posterior", get_args(LocalPosteriorName)
    )
    line.argument("--device", accepted(device_named), "cpu", "such as cuda")
    line.add_argument("--data-dir", help="in place of the scenario's")
    line.add_argument("--out", type=Path, help="folder for SCENARIO.json and SCENARIO.md")
    given = line.parse_args(words)
    if list(given.rounds) != sorted(given.rounds):
        line.error(f"--rounds must ascend, got {','.join(map(str, given.rounds))}")
    return given


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables of each scenario; with `--out` also write them after each seed."""
    arguments, console = parsed(words), Console(soft_wrap=True, markup=False)
    setups = {n: setup_of(n, arguments) for n in arguments.scenario or SCENARIOS}
    by_scenario: dict[str, dict[int, Scored]] = {name: {} for name in setups}
    texts: dict[str, str] = {}
    for seed, (name, setup) in product(range(arguments.seeds), setups.items()):
        draws = by_scenario[name]
        draws[seed] = scored(
            setup, seed, arguments.methods, arguments.rounds, arguments.predictives
        )
        parts = [f"### {name}, {len(draws)} draws", *tables(list(draws.values()))]
        texts[name] = "\n\n".join(parts)
        if arguments.out is not None:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{name}.json").write_text(as_json(name, draws))
            (arguments.out / f"{name}.md").write_text(texts[name] + "\n")
    console.print(*texts.values(), sep="\n\n")


if __name__ == "__main__":
    with limited_threads(1):
        main()
