"""What should a round remember? `replace`, `forget` and `accumulate` on two kinds of digits.

The same samples are seen again in every round, so evidence that adds up over rounds is counted many
times. *Counted* is how often: the precision that the clusters gained over their prior, in units of
the exact curvature of their members' samples at the same models. It should be 1; `replace` is
somewhat below, since clients report curvature where they have just trained and are surer of their
own samples than the cluster is. With weight 0 the prior is no part of the training loss, and
`precision_weighted` fusion takes no prior either: then the means, and so all plug-in predictions,
are the same for all three, and what differs is how sure the posterior is. With weight 1 clients are
held back by what the server claims to know; with `accumulate` so much that on some draw the network
breaks down. Linearised predictions take the posterior as it is.

`replace` is the default: its precision is about that of the data, whatever the number of rounds.
Untuned linearised predictions are better the more often samples are counted, but only because a
posterior that is too narrow comes near the plug-in; tuning the prior does that without a false
count. `forget` is for data that change.

`python -m experiments.studies.memory SEEDS`, 5 by default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any, cast, get_args

import numpy as np
import torch

from bcfl import Federation, Method, Objective, Run, methods
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.runtime.devices import limited_threads
from experiments import datasets, models, partitions
from experiments.partitions import Partition
from experiments.scores import metrics
from experiments.scores.trial import UncertaintyEvaluation, scores
from posteriors import Memory, diagonal_curvature

METHOD = "bcfl-g-w"
WEIGHTS = (0.0, 1.0)
SHOWN = ("accuracy", "ARI", "NLL", "ECE", "counted", "linearised NLL", "linearised ECE")
KINDS: Mapping[str, Callable[..., Partition]] = {
    "rotated": partitions.rotated,
    "label skew": partitions.two_stage_dirichlet,
}


def variants() -> Iterator[tuple[Memory, float, Method]]:
    """The method with each memory and weight of the prior in training; nothing else differs."""
    for weight in WEIGHTS:
        method = methods.build(METHOD, objective=Objective(prior_weight=weight))
        for memory in get_args(Memory):
            aggregation = replace(method.aggregation, memory=memory)
            yield memory, weight, replace(method, aggregation=aggregation)


def outcome(method: Method, clients: Partition, seed: int, rounds: int) -> dict[str, float]:
    """Scores after the last round."""
    federation = Federation(clients, models.mlp((1, 8, 8), 32, 10), method, seed, evaluate=False)
    run = federation.run(rounds)
    leading = run.hypotheses.best.association
    groups = [run.groups[client] or 0 for client in leading.clients]
    trial = UncertaintyEvaluation(run, federation.data, seed)
    plain, linear = (
        scores(trial.outcomes(rule), trial.parts("all"))["all"]
        for rule in (run.rule, replace(run.rule, predictive="probit"))
    )
    return {
        "accuracy": plain["accuracy"],
        "ARI": metrics.ari(groups, leading.labels.tolist()),
        "NLL": plain["nll"],
        "ECE": plain["ece"],
        "counted": counted(run),
        "linearised NLL": linear["nll"],
        "linearised ECE": linear["ece"],
    }


def counted(run: Run) -> float:
    """How often the samples of the clusters are in their precisions; NaN for broken networks."""
    best, model, data = run.hypotheses.best, run.model, {d.client: d for d in run.data}
    gained = exact = 0.0
    for cluster, posterior in enumerate(best.clusters):
        members = [c for c in best.association.clients if best.association.label(c) == cluster]
        if not members:
            continue
        views = [cast("Any", data[client].views["train"]) for client in members]
        mean = posterior.mean(model)
        workspace = FlatModule(model, mean.device, mean.dtype)
        module = workspace.load(mean, posterior.buffers(model), training=False)
        inputs = torch.cat([view.inputs for view in views])
        targets = torch.cat([view.targets for view in views])
        exact += float(diagonal_curvature(module, inputs, targets).sum())
        base = torch.cat([b.base.precision.expand(b.gaussian.mean.shape) for b in posterior.blocks])
        gained += float((posterior.precision(model) - base).sum())
    return gained / exact if exact > 0 else nan


def spread(values: Sequence[float]) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {error:.3f}"


def main(seeds: Sequence[int], rounds: int = 25, clients: int = 40) -> None:
    """Print one table in Markdown for each kind of digits."""
    digits = datasets.load("optdigits")
    for kind, draw in KINDS.items():
        drawn = [draw(digits, clients=clients, seed=seed) for seed in seeds]
        print(f"\n**{kind}**, {len(seeds)} draws, {rounds} rounds, `{METHOD}`\n")
        print(f"| prior weight | memory | {' | '.join(SHOWN)} |")
        print("|---|---" + "|---:" * len(SHOWN) + "|")
        for memory, weight, method in variants():
            pairs = zip(drawn, seeds, strict=True)
            found = [outcome(method, one, seed, rounds) for one, seed in pairs]
            cells = [spread([one[key] for one in found]) for key in SHOWN]
            print(f"| {weight:g} | {memory} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main(range(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
