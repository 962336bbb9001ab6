"""The methods of Table 1 of the BCFL paper on Fashion-MNIST, a few rounds of each."""

from time import perf_counter

from bcfl.analysis import metrics
from bcfl.runtime.devices import limited_threads
from experiments.config.scenario import load
from experiments.config.variants import Pair
from experiments.datasets.errors import DataError
from experiments.runs.runner import Experiment

METHODS = (
    "bcfl-g",
    "bcfl-g-w",
    "bcfl-c-3",
    "bcfl-c-3-w",
    "bcfl-c-6",
    "bcfl-c-6-w",
    "bcfl-mh-3",
    "bcfl-mh-3-w",
    "bcfl-mh-6",
    "bcfl-mh-6-w",
)


def table(device, rounds):
    """Lines of a table: seconds a round, and how far each method came."""
    setup = Experiment(scenario=load("fashion-label-skew"), device=device)
    try:
        setup.partition(0)
    except DataError as error:
        return [f"The methods were not run: {error}"]
    lines = [f"## fashion-label-skew, seed 0, {rounds} rounds, executor {setup.executor_name}", ""]
    lines += ["| method | s a round | accuracy | macro-F1 |", "|---|---:|---:|---:|"]
    with limited_threads(1):
        for name in METHODS:
            started = perf_counter()
            run = setup.federation(Pair(name, 0)).run(rounds)
            spent = (perf_counter() - started) / rounds
            found = metrics.summarise(run.records[-1].evaluations)
            scores = f"{found['accuracy']:.1%} | {found['macro_f1']:.1%}"
            lines.append(f"| {name} | {spent:.2f} | {scores} |")
    return lines
