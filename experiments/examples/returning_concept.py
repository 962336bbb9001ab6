"""A recurring concept: is the cluster that learnt it reused when it returns?

Handwritten digits in six time steps, with labels shifted by one in the third and fourth. Prints for
each step the accuracy in its first and last round, and the clusters of the ten clients; a number is
the same cluster in all steps. `python -m experiments.examples.returning_concept [METHODS] [SEED]`,
such as `fedavg,ifca,bcfl-forget 0`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bcfl import Federation, Run, methods
from bcfl.hypotheses import LeadingClusters
from bcfl.runtime import limited_threads
from experiments import datasets, models
from experiments.config.command_line import CommandLine, method_name, not_negative, several
from experiments.partitions.stream import stream

STEPS = 6
METHODS = ("fedavg", "ifca", "bcfl-forget")


@dataclass(frozen=True, eq=False)
class Timeline:
    """Accuracy and clusters of a method by time step.

    Attributes:
        first: (steps,) mean accuracy over the clients after the first round of the step.
        last: (steps,) the same after its last round.
        labels: (steps, clients) clusters after its last round, in the numbers of
            `bcfl.hypotheses.cluster_numbers`.
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, run: Run, steps: int) -> Timeline:
        """From a run with equally many rounds per time step.

        Args:
            run: the run.
            steps: number of time steps.
        """
        stride = len(run.records) // steps
        sums = [record.evaluations.values() for record in run.records]
        accuracy = [np.mean([s.confusion.trace() / s.num_samples for s in row]) for row in sums]
        labels = LeadingClusters.of(run.state.history).labels
        ends = slice(stride - 1, None, stride)
        return cls(np.array(accuracy[::stride]), np.array(accuracy[ends]), labels[ends])


def followed(method: str, seed: int, rounds_per_step: int = 6, clients: int = 10) -> Timeline:
    """Run a method through the six time steps.

    Args:
        method: name of the method.
        seed: seed of partition and run.
        rounds_per_step: number of rounds per time step.
        clients: number of clients.
    """
    split = stream(datasets.load("optdigits"), clients=clients, steps=STEPS, seed=seed)
    recipe = methods.build(method, **methods.applicable(method, {"num_clusters": 3}))
    run = Federation(split, models.mlp((1, 8, 8), 32, 10), recipe, seed)
    return Timeline.of(run.run(STEPS * rounds_per_step), STEPS)


def main(names: tuple[str, ...] = METHODS, seed: int = 0, rounds_per_step: int = 6) -> None:
    """Print the timeline of each method.

    Args:
        names: names of methods.
        seed: seed of partition and runs.
        rounds_per_step: number of rounds per time step.
    """
    for name in names:
        timeline = followed(name, seed, rounds_per_step)
        print(name)
        for step in range(STEPS):
            concept = "shifted" if step // 2 % 2 else "plain"
            clusters = " ".join(map(str, timeline.labels[step]))
            first, last = timeline.first[step], timeline.last[step]
            print(f"  step {step} {concept:8s} {first:6.1%} -> {last:6.1%}   clusters {clusters}")


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("methods", several(method_name()), ",".join(METHODS), "methods")
    line.argument("seed", not_negative, 0, "seed")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    with limited_threads(1):
        main(given.methods, given.seed)
