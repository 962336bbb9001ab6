"""What a method costs beside another: whole runs on digits, interleaved, one thread."""

from statistics import median
from time import perf_counter

from bcfl import Federation, methods
from bcfl.devices import limited_threads
from experiments import datasets, models, partitions
from tests.bench.row import Row

PAIRS = (
    ("ifca", "fedavg", "scoring K models"),
    ("bcfl-g", "ifca", "the curvature of each local model"),
    ("bcfl-mh-6", "bcfl-g", "distinct trainings of near copies"),
    ("bcfl-mht-8", "bcfl-g", "scoring proposals"),
)
ROUNDS, REPEATS = 25, 3


def seconds(name, partition, model):
    """Seconds of a run of 25 rounds, and the trainings done."""
    federation = Federation(partition, model, methods.build(name), evaluates=False)
    start = perf_counter()
    run = federation.run(ROUNDS)
    return perf_counter() - start, sum(record.ledger.trainings_done for record in run.records)


def run():
    """Each pair of methods on both kinds of digits, 40 clients, 4 groups, MLP 64-32-10."""
    digits, model = datasets.load("optdigits"), models.mlp((1, 8, 8), 32, 10)
    kinds = {"rotated": partitions.rotated, "label skew": partitions.two_stage_dirichlet}
    rows = []
    with limited_threads(1):
        for kind, partition in kinds.items():
            drawn = partition(digits, groups=4, clients=40, seed=0)
            for one, other, limit in PAIRS:
                times = [
                    (seconds(one, drawn, model), seconds(other, drawn, model))
                    for _ in range(REPEATS)
                ]
                ours, theirs = (1e3 * median(pair[i][0] for pair in times) for i in (0, 1))
                work = times[0][0][1] / times[0][1][1]
                name = f"{kind}: {one} beside {other} ({work:.2f}x the trainings)"
                rows.append(Row(name, ours, theirs, theirs / ours, limit))
    return rows
