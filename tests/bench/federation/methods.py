"""What a method costs beside another: whole runs on digits, interleaved, one thread."""

from statistics import median
from time import perf_counter

from bcfl import Federation, methods
from experiments import datasets, models, partitions
from tests.bench.row import Row

PAIRS = (
    ("ifca", "fedavg", "scoring K models"),
    ("bcfl-g", "ifca", "the curvature of each local model"),
    ("bcfl-mh-6", "bcfl-g", "distinct trainings of near copies"),
    ("bcfl-mht-8", "bcfl-g", "scoring proposals"),
    ("wecfl", "fedavg", "K-means on the server"),
    ("bcfl-race-4", "fedavg", "trainings and cavities of four starts"),
)
ROUNDS, SETTLED, REPEATS = 25, 10, 3


def seconds(name, partition, model):
    """Seconds of 25 rounds, seconds of the last 10, and the trainings done."""
    federation = Federation(partition, model, methods.build(name), evaluate=False)
    marks = [perf_counter()]
    run = federation.run(ROUNDS, on_round=lambda *_: marks.append(perf_counter()))
    done = sum(record.ledger.trainings_run for record in run.records)
    return marks[-1] - marks[0], marks[-1] - marks[-1 - SETTLED], done


def run():
    """Each pair of methods on both kinds of digits, 40 clients, 4 groups, MLP 64-32-10.

    The baseline is the dearer method; the ratio says how many times it costs the other.
    """
    digits, model = datasets.load("optdigits"), models.mlp((1, 8, 8), 32, 10)
    kinds = {"rotated": partitions.rotated, "label skew": partitions.two_stage_dirichlet}
    rows = []
    for kind, partition in kinds.items():
        drawn = partition(digits, groups=4, clients=40, seed=0)
        for dear, cheap, limit in PAIRS:
            pairs = [
                (seconds(cheap, drawn, model), seconds(dear, drawn, model)) for _ in range(REPEATS)
            ]
            work = pairs[0][1][2] / pairs[0][0][2]
            for column, what in enumerate((f"{ROUNDS} rounds", f"last {SETTLED} rounds")):
                ours, theirs = (1e3 * median(pair[i][column] for pair in pairs) for i in (0, 1))
                name = f"{kind}, {what}: {cheap}, then {dear} ({work:.2f}x the trainings)"
                rows.append(Row(name, ours, theirs, theirs / ours, limit))
    return rows
