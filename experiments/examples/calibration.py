"""Can the predictions of a federation be trusted? Calibration and strange samples, for each rule.

Trains one federation on turned digits, tunes prior precision and temperature on a third of the test
samples, and scores the rest: NLL, expected calibration error, and how well entropy, or the mutual
information between label and model, tells digits of other groups and noise from a client's own.
`python -m experiments.examples.calibration ROUNDS`, 60 by default.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from bcfl import Federation, PredictionRule, methods
from bcfl.devices import limited_threads
from experiments import datasets, models, partitions
from experiments.trial import Trial, scores

SHOWN = {
    "accuracy": "right",
    "nll": "NLL",
    "ece": "ECE",
    "strange_auroc": "others",
    "strange_auroc_knowledge": "by MI",
    "noise_auroc": "noise",
}


def trial(rounds: int, clients: int = 20, seed: int = 0) -> Trial:
    """A federation that was trained, and the clients' test samples."""
    drawn = partitions.rotated(datasets.load("optdigits"), clients=clients, seed=seed)
    method = methods.build("bcfl-mht-8", methods.Settings(4))
    federation = Federation(drawn, models.mlp((1, 8, 8), 32, 10), method, seed, evaluates=False)
    return Trial(federation.run(rounds), federation.data, seed)


def main(rounds: int, clients: int = 20) -> None:
    """Print a row for each rule, plain and tuned."""
    one = trial(rounds, clients)
    plain = [PredictionRule(), PredictionRule("linearised"), PredictionRule("monte-carlo")]
    table = Table("prediction", "prior", "T", *SHOWN.values())
    for rule in [*plain, *map(one.tuned, plain)]:
        found = scores(one.outcomes(rule), one.parts("all"))["all"]
        precision = "–" if rule.prior_precision is None else f"{rule.prior_precision:g}"
        numbers = [f"{found[name]:.3f}" for name in SHOWN]
        table.add_row(rule.predictive, precision, f"{rule.temperature:.2f}", *numbers)
    Console().print(table)


if __name__ == "__main__":
    with limited_threads(1):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
