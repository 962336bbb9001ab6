"""Do predictions profit from uncertainty about associations?

Test log loss and accuracy of three ways to predict for a client: by the cluster of the leading
hypothesis, by the association of all hypotheses by which clients train, and by the belief, mixed
over hypotheses. The clients of `association_posterior`, with 20 test samples each beside those for
training, 25 rounds; differences from the leading hypothesis with standard errors over draws.
`python -m experiments.studies.associations.predictions DRAWS METHODS KIND SAMPLES`: 10 draws of
rotated handwritten digits with 8, 12 and 20 training samples by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bcfl import ClientData, Federation, HypothesisSet, Run, methods
from bcfl.runtime import limited_threads
from experiments import models
from experiments.config.command_line import CommandLine, method_name, positive, several
from experiments.studies.association_posterior import CLUSTERS, GROUPS, KINDS, ROUNDS, clients_of

TESTED = 20
METHODS = ("bcfl-mht-8", "bcfl-race-4")
Way = Literal["belief", "association"]
WAYS = ("leading", "association", "belief")


def trained(
    name: str,
    clients: Sequence[ClientData],
    seed: int,
    clusters: int = GROUPS,
    rounds: int = ROUNDS,
) -> Run:
    """A run of a method on one draw.

    Args:
        name: of the method.
        clients: with test samples.
        seed: of the run.
        clusters: number K of clusters.
        rounds: number of rounds.
    """
    shape = tuple(clients[0].views["train"].inputs.shape[1:])
    method = methods.build(name, num_clusters=clusters)
    federation = Federation(clients, models.mlp(shape, 32, 10), method, seed=seed, evaluate=False)
    return federation.run(rounds)


def losses(run: Run, clients: Sequence[ClientData]) -> NDArray[np.float64]:
    """Test log loss, nats, and accuracy of each way to predict, (ways, 2)."""
    leading = HypothesisSet.weighted([run.hypotheses.best], run.state.round, float("nan"))
    alone = replace(run, state=replace(run.state, hypotheses=leading))
    rows = []
    for way in WAYS:
        of = alone if way == "leading" else run
        by: Way = "belief" if way == "belief" else "association"
        scores = []
        for client in clients:
            test = client.views["test"]
            targets = test.targets.numpy()
            p = of.predict(client.client, test.inputs, by=by).mean
            right = p[np.arange(len(test)), targets]
            scores.append((-np.log(right).mean(), (p.argmax(1) == targets).mean()))
        rows.append(np.mean(scores, axis=0))
    return np.array(rows)


def row(name: str, samples: int, found: NDArray[np.float64]) -> str:
    """A row of the table.

    Args:
        name: of the method.
        samples: training samples of each client.
        found: (draws, ways, 2) losses and accuracies.
    """
    cells = [f"{value:.3f}" for value in found[:, 0].mean(axis=0)]
    for index in range(1, len(WAYS)):
        gains = found[:, index] - found[:, 0]
        errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else gains[0] * 0
        pairs = zip(gains.mean(axis=0), errors, strict=True)
        cells += [f"{gain:+.3f} ± {error:.3f}" for gain, error in pairs]
    return f"| {samples} | `{name}` | " + " | ".join(cells) + " |"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("draws", positive, 10, "number of draws")
    line.argument(
        "methods", several(method_name(num_clusters=GROUPS), ";"), ";".join(METHODS), "methods"
    )
    line.argument("kind", str, "rotated", "partition", KINDS)
    line.argument("samples", several(positive), "8,12,20", "training samples of each client")
    return line.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parsed(words)
    console = Console(stderr=True)
    columns = [f"{way}: {score}" for way in WAYS for score in ("NLL", "accuracy")]
    print(f"\n{given.kind}\n\n| samples | method | " + " | ".join(columns) + " |")
    print("|---:|---|" + "---:|" * len(columns), flush=True)
    for count in given.samples:
        for name in given.methods:
            found = []
            for seed in track(range(given.draws), name, console=console, transient=True):
                clients = clients_of(given.kind, count, seed, TESTED)
                run = trained(name, clients, seed, CLUSTERS.get(given.kind, GROUPS))
                found.append(losses(run, clients))
            print(row(name, count, np.array(found)), flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
