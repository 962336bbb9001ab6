"""A round of local training against a lean loop, and what other methods cost beside FedAvg."""

from dataclasses import replace
from statistics import median
from time import perf_counter

import numpy as np
import torch

from bcfl import ClientData, Federation, Model, Objective
from bcfl.data.names import TRAIN
from bcfl.executors import ExecutorConfig, build_executor, select_executor
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Score, Train
from bcfl.runtime.devices import limited_threads
from experiments import datasets, models, partitions
from tests.bench.federation.lean import LeanLoop, network
from tests.bench.row import Row
from tests.recipes import built

CPU = torch.device("cpu")
PAIRS, ROUNDS, MODELS = 15, 6, 4
CNN = Model(name="cnn", build=network, input_shape=(1, 28, 28), num_outputs=10)
STEP = Objective(learning_rate=0.01)


def images(count=40, samples=300):
    """Clients of noise: only the time matters."""
    random = np.random.default_rng(0)
    return [
        ClientData.from_arrays(
            f"c{i:03}",
            (
                random.normal(size=(samples, 1, 28, 28)).astype(np.float32),
                random.integers(0, 10, samples),
            ),
        )
        for i in range(count)
    ]


def interleaved(name, ours, baseline, limit, pairs=PAIRS):
    """Wall time of two ways in turn; the ratio is the median over pairs."""
    ours(), baseline()
    times = []
    for _ in range(pairs):
        marks = [perf_counter()]
        for work in (ours, baseline):
            work()
            marks.append(perf_counter())
        times.append((1e3 * (marks[1] - marks[0]), 1e3 * (marks[2] - marks[1])))
    fast, slow = (median(column) for column in zip(*times, strict=True))
    return Row(name, fast, slow, median(theirs / mine for mine, theirs in times), limit)


def against_lean(name, model, clients, objective, limit):
    """Training all clients, then scoring four models on all: an executor and the lean loop."""
    plain = [(data.views[TRAIN].inputs, data.views[TRAIN].targets) for data in clients]
    lean = LeanLoop(
        model.module, plain, objective.local_steps, objective.batch_size, objective.learning_rate
    )
    tensors = [[p.detach() for p in model.module(i).parameters()] for i in range(MODELS)]
    born = [from_initial(model, f"k{i}", *model.initial(i), 1.0) for i in range(MODELS)]
    known = {posterior.key: posterior for posterior in born}
    kind, _ = select_executor(ExecutorConfig(), model, CPU)
    executor = build_executor(ExecutorConfig(), clients, model, 0, CPU, torch.float32)
    trains = [Train(data.client, born[0].key, objective) for data in clients]
    scores = [Score(client=data.client, models=tuple(known)) for data in clients]
    return [
        interleaved(
            f"{name}, training: {kind} executor, then lean loop",
            lambda: executor.answer(trains, known, 0),
            lambda: lean.train(tensors[0]),
            limit,
        ),
        interleaved(
            f"{name}, scoring {MODELS} models: {kind} executor, then lean loop",
            lambda: executor.answer(scores, known, 0),
            lambda: lean.score(tensors),
            limit,
        ),
    ]


class Rounds:
    """One round after the other of a method."""

    def __init__(self, name, clients, model, threads, **settings):
        method = built(name, objective=STEP, **settings)
        self.federation = Federation(clients, model, method, evaluate=False, threads=threads)
        self.state = self.federation.initial_state()
        self.trainings = 0

    def __call__(self):
        run = self.federation.run(self.state.round + 1, state=self.state)
        self.state = run.state
        self.trainings += run.records[0].ledger.trainings_run


def beside(cheap, dear, clients, model, threads, limit, rounds=ROUNDS, **settings):
    """A round of a dear method over one of a cheap method."""
    one = Rounds(cheap, clients, model, threads)
    other = Rounds(dear, clients, model, threads, **settings)
    row = interleaved("", one, other, limit, rounds)
    shown = "".join(f", {key} {value}" for key, value in settings.items())
    work = other.trainings / one.trainings
    name = f"{model.name}, {len(clients)} clients, one round: {cheap}, then {dear}{shown}"
    return row._replace(name=f"{name} ({work:.2f}x the trainings)")


def operations(scored, clusters=MODELS, steps=10, batch=32):
    """What an IFCA round costs over one of FedAvg by its floating-point operations alone.

    A training step costs a forward pass and twice that for the gradients.
    """
    return f"operations alone: {1 + clusters * scored / (3 * steps * batch):.2f}x"


def run():
    """CNN on two threads, 40 clients x 300; MLP 64-32-10 on digits on one thread."""
    clients = images()
    rows = []
    with limited_threads(2):
        limit = "the convolutions themselves"
        rows += against_lean("CNN, 40 clients x 300", CNN, clients, STEP, limit)
        for samples in (None, 64):
            scored = samples or 300
            rows.append(
                beside(
                    "fedavg", "ifca", clients, CNN, 2, operations(scored),
                    num_clusters=MODELS, score_samples=samples,
                )
            )  # fmt: skip
        few = images(8, 60)
        rows.append(beside("bcfl-g", "bcfl-mh-6", few, CNN, 2, "trainings of near copies", 4))
    digits = partitions.rotated(datasets.load("optdigits"), groups=4, clients=40, seed=0)
    small = replace(models.mlp((1, 8, 8), 32, 10), name="MLP 64-32-10")
    with limited_threads(1):
        rows += against_lean(
            "MLP 64-32-10, digits, 40 clients", small, list(digits), Objective(),
            "batched matrix products",
        )  # fmt: skip
        rows.append(beside("fedavg", "ifca", digits, small, 1, "scoring K models", 15))
        rows.append(beside("bcfl-g", "bcfl-mh-6", digits, small, 1, "trainings of copies", 15))
    return rows
