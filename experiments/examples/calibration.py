"""Can the predictions of a federation be trusted? Each way to predict, with and without tuning.

Every method sets a fifth of the clients' training samples aside; prior precision and temperature
are tuned on sums over those, so a tuned `plug-in` is temperature scaling. Scored on test samples:
NLL in nats, expected calibration error, and AUROC of finding wrong predictions by their confidence,
and samples of other groups and noise by the entropy, or by the part of it due to not knowing model
and association. Differences are to the first method's tuned softmax on the same draws, with one
standard error. `python -m experiments.examples.calibration SEEDS`, 10 by default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev

from rich.console import Console
from rich.table import Table

from bcfl import Federation, PredictionRule, methods
from bcfl.devices import limited_threads
from bcfl.federation.predictions import PredictiveName
from experiments import datasets, models, partitions
from experiments.partitions import Partition
from experiments.trial import Trial, scores

METHODS = ("wecfl", "ifca-w", "bcfl-g-w", "bcfl-c-3-w", "bcfl-mh-3-w")
ROUNDS = (5, 40)
SHARE, DRAWS = 0.2, 32
POSTERIOR: tuple[PredictiveName, ...] = ("monte-carlo", "probit", "bridge", "linearised")
SHOWN = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "ece": "ECE",
    "wrong_auroc": "wrong",
    "strange_auroc": "other groups",
    "strange_auroc_knowledge": "by knowledge",
    "noise_auroc": "noise",
    "noise_auroc_knowledge": "by knowledge",
}
KINDS: Mapping[str, Callable[..., Partition]] = {
    "rotated": partitions.rotated,
    "label skew": partitions.two_stage_dirichlet,
}
Found = Mapping[tuple[int, str, str], Mapping[str, float]]


def found(clients: Partition, seed: int, rounds: Sequence[int] = ROUNDS) -> Found:
    """Scores by rounds, method and kind of prediction, for one draw of the clients."""
    return {
        (trial.run.state.round, name, label): scores(trial.outcomes(rule), trial.parts("all"))[
            "all"
        ]
        for name in METHODS
        for trial in trials(name, clients, seed, rounds)
        for label, rule in rules(trial, curved=name.startswith("bcfl"))
    }


def trials(name: str, clients: Partition, seed: int, rounds: Sequence[int]) -> Iterator[Trial]:
    """A federation after each number of rounds."""
    method = replace(methods.build(name), validation=SHARE)
    model = models.mlp((1, 8, 8), 32, 10)
    federation = Federation(clients, model, method, seed, evaluates=False)
    state = None
    for stop in rounds:
        run = federation.run(stop, state=state)
        state = run.state
        yield Trial(run, federation.data, seed)


def rules(trial: Trial, *, curved: bool) -> Iterator[tuple[str, PredictionRule]]:
    """Each kind of prediction, as it is and tuned; the plain softmax comes first."""
    for kind in ("plug-in", *(POSTERIOR if curved else ())):
        rule = PredictionRule(kind, num_draws=DRAWS)
        if kind != "linearised":  # `probit` says the same without draws
            yield kind, rule
        yield f"{kind}, tuned", trial.tuned(rule)


def tables(every: Sequence[Found]) -> Iterator[Table]:
    """A table for each number of rounds: means over draws, and differences in NLL and ECE."""
    for stop in dict.fromkeys(rounds for rounds, *_ in every[0]):
        head = ["method", "prediction", *SHOWN.values(), "NLL, difference", "ECE, difference"]
        table = Table(*head, title=f"{stop} rounds")
        rival = (stop, METHODS[0], "plug-in, tuned")
        for key in (key for key in every[0] if key[0] == stop):
            means = [f"{mean(one[key][score] for one in every):.3f}" for score in SHOWN]
            less = [[one[key][s] - one[rival][s] for one in every] for s in ("nll", "ece")]
            table.add_row(key[1], key[2], *means, *map(difference, less))
        yield table


def difference(values: Sequence[float]) -> str:
    """Mean of paired differences, with one standard error where there are several."""
    if len(values) < 2:
        return f"{values[0]:+.3f}"
    return f"{mean(values):+.3f} ± {stdev(values) / len(values) ** 0.5:.3f}"


def main(seeds: Sequence[int], rounds: Sequence[int] = ROUNDS, clients: int = 40) -> None:
    """Print the tables of both kinds of digits."""
    digits, console = datasets.load("optdigits"), Console()
    for kind, draw in KINDS.items():
        every = [found(draw(digits, clients=clients, seed=s), s, rounds) for s in seeds]
        console.print(f"{kind}, {len(every)} draws", *tables(every), sep="\n")


if __name__ == "__main__":
    with limited_threads(1):
        main(range(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
