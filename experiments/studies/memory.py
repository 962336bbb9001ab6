"""Memory over rounds: `replace`, `forget` and `accumulate` on two partitions of digits.

Rounds revisit the same samples, so evidence that accumulates over rounds is counted repeatedly.
*Counted* is how often: the increase of the clusters' precision over their prior, in units of the
exact curvature of their members' samples at the same models. The correct value is 1; `replace` is
slightly below, since clients report curvature at their locally trained models, which fit their
samples better than the cluster's. With weight 0 the prior is not part of the training loss, nor of
`precision_weighted` fusion: the means, and so all plug-in predictions, are then the same for all
memories, and only the precision differs. With weight 1 the prior regularises local training, with
`accumulate` the more the longer it runs. Linearised predictions use the posterior untuned.

`replace` is the default: its precision is about that of the data for any number of rounds. Untuned
linearised predictions improve with repeated counting, but only because a posterior that is too
narrow approaches the plug-in; tuning the prior has this effect without double counting. `forget` is
for data that change over time.

`python -m experiments.studies.memory SEEDS`, 5 by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any, cast, get_args

import numpy as np
import torch

from bcfl import ClientData, Federation, Method, Objective, Run, methods
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, positive
from experiments.partitions import Partition
from experiments.scores.uncertainty_evaluation import UncertaintyEvaluation, scores
from posteriors import Memory, diagonal_curvature

METHOD = "bcfl-g-w"
WEIGHTS = (0.0, 1.0)
SHOWN = ("accuracy", "ARI", "NLL", "ECE", "counted", "linearised NLL", "linearised ECE")
KINDS: Mapping[str, Callable[..., Partition]] = {
    "rotated": partitions.rotated,
    "label skew": partitions.two_stage_dirichlet,
}


def variants() -> Iterator[tuple[Memory, float, Method]]:
    """The method with each memory and each weight of the prior in the training loss."""
    for weight in WEIGHTS:
        method = methods.build(METHOD, objective=Objective(prior_weight=weight))
        for memory in get_args(Memory):
            aggregation = replace(method.aggregation, memory=memory)
            yield memory, weight, replace(method, aggregation=aggregation)


def final_scores(method: Method, clients: Partition, seed: int, rounds: int) -> dict[str, float]:
    """Scores after the last round.

    Args:
        method: the method.
        clients: partition of the data.
        seed: seed of the run.
        rounds: number of rounds.
    """
    federation = Federation(clients, models.mlp((1, 8, 8), 32, 10), method, seed, evaluate=False)
    run = federation.run(rounds)
    evaluation = UncertaintyEvaluation(run, federation.clients, seed)
    plain, linear = (
        scores(evaluation.predictions(rule), evaluation.parts("all"))["all"]
        for rule in (run.rule, replace(run.rule, predictive="probit"))
    )
    return {
        "accuracy": plain["accuracy"],
        "ARI": run.metrics()["ari"],
        "NLL": plain["nll"],
        "ECE": plain["ece"],
        "counted": counted(run, federation.clients),
        "linearised NLL": linear["nll"],
        "linearised ECE": linear["ece"],
    }


def counted(run: Run, clients: Sequence[ClientData]) -> float:
    """Increase of precision over exact curvature, summed over clusters; NaN without curvature.

    Args:
        run: outcome of a federation.
        clients: its clients with their samples.
    """
    best, model, data = run.hypotheses.best, run.model, {d.client: d for d in clients}
    gained = exact = 0.0
    for cluster, posterior in enumerate(best.clusters):
        members = [c for c in best.association.clients if best.association.label(c) == cluster]
        if not members:
            continue
        views = [cast("Any", data[client].views["train"]) for client in members]
        module = model.network(posterior.mean(model), posterior.buffers(model))
        inputs = torch.cat([view.inputs for view in views])
        targets = torch.cat([view.targets for view in views])
        exact += float(diagonal_curvature(module, inputs, targets).sum())
        base = torch.cat([b.base.precision.expand(b.gaussian.mean.shape) for b in posterior.blocks])
        gained += float((posterior.precision(model) - base).sum())
    return gained / exact if exact > 0 else nan


def spread(values: Sequence[float]) -> str:
    """Text of mean and standard error."""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {error:.3f}"


def main(seeds: Sequence[int], rounds: int = 25, clients: int = 40) -> None:
    """Print a Markdown table for each partition.

    Args:
        seeds: seeds of draws and runs.
        rounds: number of rounds.
        clients: number of clients.
    """
    digits = datasets.load("optdigits")
    for kind, draw in KINDS.items():
        drawn = [draw(digits, clients=clients, seed=seed) for seed in seeds]
        print(f"\n**{kind}**, {len(seeds)} draws, {rounds} rounds, `{METHOD}`\n")
        print(f"| prior weight | memory | {' | '.join(SHOWN)} |")
        print("|---|---" + "|---:" * len(SHOWN) + "|")
        for memory, weight, method in variants():
            pairs = zip(drawn, seeds, strict=True)
            scored = [final_scores(method, split, seed, rounds) for split, seed in pairs]
            cells = [spread([scores[key] for scores in scored]) for key in SHOWN]
            print(f"| {weight:g} | {memory} | {' | '.join(cells)} |", flush=True)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seeds", positive, 5, "number of seeds")
    return line.parse_args(words)


if __name__ == "__main__":
    seeds = range(parsed().seeds)
    with limited_threads(1):
        main(seeds)
