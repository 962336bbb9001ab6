"""Can the predictions of a federation be trusted? Each way to predict, with and without tuning.

Every method sets a fifth of the clients' training samples aside; prior precision and temperature
are tuned on sums over those, so a tuned `plug-in` is temperature scaling. Scored on test samples:
NLL in nats, expected calibration error, and AUROC of finding wrong predictions by their confidence,
and samples of other groups and noise by their strangeness to the client's cluster, and by entropy.
Differences are to the same method's plain and tuned softmax on the same draws, with one standard
error. `python -m experiments.studies.calibration SEEDS`, 10 by default; `--help` has the rest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console

from bcfl import PredictionRule
from bcfl.analysis.predictions import PredictiveName
from bcfl.runtime.devices import limited_threads
from experiments.config import scenario as scenarios
from experiments.config.variants import Pair
from experiments.runs.runner import Experiment
from experiments.scores.trial import UncertaintyEvaluation, scores

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
    "strange_auroc": "other groups",
    "strange_auroc_entropy": "by entropy",
    "noise_auroc": "noise",
    "noise_auroc_entropy": "by entropy",
}
RIVALS = {"plain": "plug-in", "tuned": "plug-in, tuned"}
Found = Mapping[tuple[int, str, str], Mapping[str, float]]


def setup_of(name: str, asked: argparse.Namespace) -> Experiment:
    """A scenario in which clients set samples aside; images get a network without BatchNorm."""
    found = scenarios.load(name)
    rules = found.federation.with_options(calibration=SHARE, posterior=asked.posterior)
    model = found.model
    if model.name == "fashion-cnn":
        model = replace(model, name="fashion-cnn-gn")
    data = replace(found.data, data_dir=asked.data_dir or found.data.data_dir)
    return Experiment(replace(found, federation=rules, model=model, data=data), asked.device)


def found(
    setup: Experiment,
    seed: int,
    methods: Sequence[str],
    rounds: Sequence[int],
    kinds: Sequence[PredictiveName] = POSTERIOR,
) -> Found:
    """Scores by rounds, method and kind of prediction, for one draw of the clients.

    Args:
        setup: the scenario.
        seed: of the draw.
        methods: names.
        rounds: after which to predict.
        kinds: of prediction beside the plug-in, for methods with posteriors.
    """
    return {
        (trial.run.state.round, name, label): scores(trial.outcomes(rule), trial.parts("all"))[
            "all"
        ]
        for name in methods
        for trial in trials(setup, Pair(name, seed), rounds)
        for label, rule in rules(trial, kinds if name.startswith("bcfl") else ())
    }


def trials(setup: Experiment, pair: Pair, rounds: Sequence[int]) -> Iterator[UncertaintyEvaluation]:
    """A federation after each number of rounds."""
    federation = replace(setup.federation(pair), evaluate=False)
    state = None
    for stop in rounds:
        run = federation.run(stop, planned_rounds=rounds[-1], state=state)
        state = run.state
        yield UncertaintyEvaluation(run, federation.data, pair.seed)


def rules(
    trial: UncertaintyEvaluation, kinds: Sequence[PredictiveName]
) -> Iterator[tuple[str, PredictionRule]]:
    """Each kind of prediction, as it is and tuned; the plain softmax comes first."""
    names: tuple[PredictiveName, ...] = ("plug-in", *kinds)
    for kind in names:
        rule = PredictionRule(kind, num_draws=DRAWS)
        if kind in ("plug-in", "probit"):  # plain, draws say the same as `probit` or less
            yield kind, rule
        yield f"{kind}, tuned", trial.tuned(rule)


def tables(every: Sequence[Found]) -> Iterator[str]:
    """A table in Markdown for each number of rounds: means over draws, and paired differences."""
    for stop in dict.fromkeys(rounds for rounds, *_ in every[0]):
        differences = [f"{s} to {rival}" for rival in RIVALS for s in ("NLL", "ECE")]
        head = ["method", "prediction", *SHOWN.values(), *differences, "groups", "noise"]
        lines = [f"**{stop} rounds**", "", _row(head), _row(["---"] * len(head))]
        for key in (key for key in every[0] if key[0] == stop):
            means = [f"{mean(one[key][score] for one in every):.3f}" for score in SHOWN]
            less = [
                [one[key][score] - one[*key[:2], rival][score] for one in every]
                for rival in RIVALS.values()
                for score in ("nll", "ece")
            ]
            plain = (*key[:2], RIVALS["plain"])
            more = [
                [one[key][f"{s}_auroc"] - one[plain][f"{s}_auroc_entropy"] for one in every]
                for s in ("strange", "noise")
            ]
            lines.append(_row([*key[1:], *means, *map(difference, less + more)]))
        yield "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def difference(values: Sequence[float]) -> str:
    """Mean of paired differences, with one standard error where there are several."""
    if len(values) < 2:
        return f"{values[0]:+.3f}"
    return f"{mean(values):+.3f} ± {stdev(values) / len(values) ** 0.5:.3f}"


def as_json(name: str, every: Mapping[int, Found]) -> str:
    """All scores for programs."""
    rows = [
        {"scenario": name, "seed": seed, "rounds": key[0], "method": key[1], "prediction": key[2]}
        | dict(found)
        for seed, one in every.items()
        for key, found in one.items()
    ]
    return json.dumps(rows, indent=1) + "\n"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description="Calibration and detection, with and without tuning."
    )
    parser.add_argument("seeds", nargs="?", type=int, default=10, help="number of seeds")
    parser.add_argument("--scenario", action="append", help="may be repeated; two kinds of digits")
    parser.add_argument("--rounds", default=",".join(map(str, ROUNDS)), help="such as 5,40,150")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--predictives", default=",".join(POSTERIOR), help="%(default)s")
    parser.add_argument("--posterior", default="laplace-diag", help="local one, see the README")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path, help="folder for SCENARIO.json and SCENARIO.md")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables of each scenario, and write them after every seed where asked to."""
    asked, console = parsed(words), Console(soft_wrap=True, markup=False)
    stops, names = [int(text) for text in asked.rounds.split(",")], asked.methods.split(",")
    setups = {n: setup_of(n, asked) for n in asked.scenario or SCENARIOS}
    kinds: list[PredictiveName] = [
        PredictionRule(kind).predictive for kind in asked.predictives.split(",")
    ]
    every: dict[str, dict[int, Found]] = {name: {} for name in setups}
    texts: dict[str, str] = {}
    for seed, (name, setup) in product(range(asked.seeds), setups.items()):
        draws = every[name]
        draws[seed] = found(setup, seed, names, stops, kinds)
        parts = [f"### {name}, {len(draws)} draws", *tables(list(draws.values()))]
        texts[name] = "\n\n".join(parts)
        if asked.out is not None:
            asked.out.mkdir(parents=True, exist_ok=True)
            (asked.out / f"{name}.json").write_text(as_json(name, draws))
            (asked.out / f"{name}.md").write_text(texts[name] + "\n")
    console.print(*texts.values(), sep="\n\n")


if __name__ == "__main__":
    with limited_threads(1):
        main()
