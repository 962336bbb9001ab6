"""How large is the calibration error of exact probabilities? Groups drawn from the posterior.

Pairs of one federation stand or fall together, so that even exact co-association probabilities have
a calibration error. If the groups of the clients were drawn from the posterior itself (a
hypothesis by its weight, then a cluster for each client), its probabilities would be exact: the
error that they have then is beside the one against the true groups, with the mean share of drawn
groups whose error is at least that; .5 is what exact probabilities have. Clients, methods and
rounds are those of `association_posterior`.
`python -m experiments.studies.associations.expected_error SAMPLES KIND DRAWS FIRST METHODS`: 8
samples a client, `rotated`, 10 draws from seed 0 and `bcfl-race-4` by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bcfl import HypothesisSet
from bcfl.analysis import pairs
from bcfl.runtime import limited_threads
from experiments.config.command_line import (
    CommandLine,
    method_name,
    several,
)
from experiments.studies.association_posterior import (
    CLUSTERS,
    GROUPS,
    ROUNDS,
    clients_of,
    with_draws,
)
from experiments.studies.associations.predictions import trained

REPEATS = 200


def drawn_errors(
    hypotheses: HypothesisSet, random: np.random.Generator, repeats: int = REPEATS
) -> NDArray[np.float64]:
    """Calibration errors of pairs against groups that are drawn from the posterior, (repeats,).

    Args:
        hypotheses: the posterior, of clients that all have been seen.
        random: source of randomness.
        repeats: number of draws of the groups.
    """
    together, weights = hypotheses.co_association(), hypotheses.weights
    errors = []
    for _ in range(repeats):
        chosen = hypotheses[int(random.choice(len(hypotheses), p=weights / weights.sum()))]
        groups = [int(random.choice(len(p), p=p / p.sum())) for p in chosen.membership]
        errors.append(pairs.association_scores(together, groups)["association_ece"])
    return np.array(errors)


def row(title: str, found: NDArray[np.float64]) -> str:
    """A row of the table: means with standard errors over draws.

    Args:
        title: first cells.
        found: (draws, 3) error, error of exact probabilities, share of drawn errors at least that.
    """
    errors = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else found[0] * 0
    cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(found.mean(axis=0), errors, strict=True)]
    return f"| {title} | " + " | ".join(cells) + " |"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = with_draws(CommandLine(__doc__), "8")
    line.argument(
        "methods", several(method_name(num_clusters=GROUPS), ";"), "bcfl-race-4", "methods"
    )
    return line.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parsed(words)
    console = Console(stderr=True)
    print(f"\n{given.kind}\n\n| samples | method | ECE | ECE if exact | share |")
    print("|---:|---|---:|---:|---:|", flush=True)
    for count in given.samples:
        for name in given.methods:
            found = []
            seeds = range(given.first, given.first + given.draws)
            for seed in track(seeds, name, console=console, transient=True):
                clients = clients_of(given.kind, count, seed)
                run = trained(name, clients, seed, CLUSTERS.get(given.kind, GROUPS), ROUNDS)
                groups = [run.groups[client] for client in run.clients]
                error = pairs.association_scores(run.co_association(), groups)["association_ece"]
                drawn = drawn_errors(run.hypotheses, np.random.default_rng(0))
                found.append((error, drawn.mean(), (drawn >= error).mean()))
            print(row(f"{count} | `{name}`", np.array(found)), flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
