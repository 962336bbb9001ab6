"""Are many groups found? MNIST, 10 clients of 80 samples in each of 8, 12 or 20 groups.

Two-stage Dirichlet (.1, 10), MLP 784-64-10, 25 rounds; adjusted Rand index of the leading
hypothesis, and local trainings over those of one hypothesis.
`python -m experiments.studies.associations.many_clusters GROUPS SEEDS METHODS`: `8,12,20`,
`0,1,2` and all of `METHODS` by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from sklearn.metrics import adjusted_rand_score

from bcfl import Federation, methods
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, not_negative, one_of, positive, several

DATA, MEMBERS, SAMPLES, ROUNDS = "mnist", 10, 80, 25
METHODS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "wecfl": ("wecfl", {}),
    "wecfl-w": ("wecfl-w", {}),
    "bcfl-g-w": ("bcfl-g-w", {}),
    "bcfl-race-2": (
        "bcfl-race-2",
        {"warm_starts": 2, "held_rounds": 3, "annealing": None, "min_weight": 0.05},
    ),
    "bcfl-race-2, annealed": ("bcfl-race-2", {"warm_starts": 2, "min_weight": 0.05}),
}


def found(name: str, groups: int, seed: int, rounds: int = ROUNDS) -> tuple[float, float]:
    """Adjusted Rand index, and local trainings over those of one hypothesis.

    Args:
        name: one of `METHODS`.
        groups: number of groups, and of clusters.
        seed: of the draw and the run.
        rounds: number of rounds.
    """
    clients = partitions.two_stage_dirichlet(
        datasets.load(DATA),
        groups=groups,
        clients=MEMBERS * groups,
        alpha=(0.1, 10),
        seed=seed,
        samples_per_client=SAMPLES,
    )
    recipe, options = METHODS[name]
    method = methods.build(recipe, num_clusters=groups, **options)
    model = models.mlp(tuple(clients[0].views["train"].inputs.shape[1:]), 64, 10)
    run = Federation(clients, model, method, seed=seed, evaluate=False).run(rounds)
    truth = [run.groups[client] for client in run.clients]
    labels = run.hypotheses.best.association.labels
    trainings = sum(record.ledger.trainings_run for record in run.records)
    return float(adjusted_rand_score(truth, labels)), trainings / (rounds * len(clients))


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("groups", several(positive), "8,12,20", "numbers of groups")
    line.argument("seeds", several(not_negative), "0,1,2", "seeds")
    line.argument(
        "methods", several(one_of("method", METHODS), ";"), ";".join(METHODS), "separated by ;"
    )
    return line.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parsed(words)
    print("| groups | seed | method | ARI | trainings |")
    print("|---:|---:|---|---:|---:|", flush=True)
    for count in given.groups:
        for seed in given.seeds:
            for name in given.methods:
                ari, price = found(name, count, seed)
                print(f"| {count} | {seed} | `{name}` | {ari:.3f} | {price:.2f} |", flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
