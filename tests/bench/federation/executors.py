"""Executors against the loop over clients: one round, interleaved; batched on one thread."""

from statistics import median
from time import process_time

import numpy as np
import torch
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.executors import BatchedExecutor, LoopExecutor, ProcessesExecutor
from bcfl.executors.pool.workers import Workers
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Score, Train
from bcfl.runtime.devices import limited_threads
from experiments.models import mlp
from tests.bench.federation.rounds import interleaved
from tests.bench.row import Row

REPEATS, MODELS, PAIRS, PROCESSES = 3, 4, 5, 2
CPU = torch.device("cpu")


def drawn(count, shape, samples=30):
    """Clients with about as many samples as on digits, of noise: only the time matters."""
    random = np.random.default_rng(0)
    sizes = random.integers(samples // 2, 2 * samples, count)
    return [
        ClientData.from_arrays(
            f"c{i:05}",
            (random.normal(size=(n, *shape)).astype(np.float32), random.integers(0, 10, n)),
        )
        for i, n in enumerate(sizes)
    ]


def cnn():
    layers = (
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return nn.Sequential(*layers)


def seconds(executor, requests, models):
    """Processor time: other programs on the machine do not count."""
    started = process_time()
    executor.answer(requests, models, 0)
    return process_time() - started


def compared(name, model, clients, objective):
    """Training and scoring of a round by both executors."""
    births = (from_initial(model, f"k{i}", *model.initial(i), 1.0) for i in range(MODELS))
    models = {posterior.key: posterior for posterior in births}
    keys = tuple(models)
    loop = LoopExecutor.on(clients, model, 0, CPU, torch.float32)
    batched = BatchedExecutor.on(clients, model, 0, CPU, torch.float32)
    work = {
        "training": [Train(c.client, keys[i % MODELS], objective) for i, c in enumerate(clients)],
        f"scoring {MODELS} models": [Score(client=c.client, models=keys) for c in clients],
    }
    rows = []
    for what, requests in work.items():
        pairs = [
            (seconds(batched, requests, models), seconds(loop, requests, models))
            for _ in range(REPEATS)
        ]
        ours, theirs = (1e3 * median(pair[i] for pair in pairs) for i in (0, 1))
        title = f"{name}, {len(clients)} clients, {what}: batched, then loop"
        rows.append(Row(title, ours, theirs, theirs / ours, "batched matrix products"))
    return rows


def by_processes(name, model, clients, objective):
    """Wall time of training by processes, and by the loop, all of one thread."""
    start = from_initial(model, "k", *model.initial(0), 1.0)
    trains = [Train(data.client, start.key, objective) for data in clients]
    loop = LoopExecutor.on(clients, model, 0, CPU, torch.float32)
    workers = Workers(PROCESSES)
    processes = ProcessesExecutor.on(clients, model, 0, CPU, torch.float32, workers=workers)
    try:
        return interleaved(
            f"{name}, {len(clients)} clients, training: {PROCESSES} processes, then loop",
            lambda: processes.answer(trains, {start.key: start}, 0),
            lambda: loop.answer(trains, {start.key: start}, 0),
            "cores; models are copied to the processes and back",
            PAIRS,
        )
    finally:
        workers.close()


def run():
    """MLP and CNN on images of 8 x 8, the MLP with 10 to 1,000 clients, then processes."""
    with limited_threads(1):
        measured = rows()
        small, images = (
            mlp((1, 8, 8), 32, 10),
            Model(name="cnn", build=cnn, input_shape=(1, 8, 8), num_outputs=10),
        )
        for name, model in (("MLP 64-32-10", small), ("CNN", images)):
            measured.append(by_processes(name, model, drawn(40, (1, 8, 8)), Objective()))
    return measured


def rows():
    small = mlp((1, 8, 8), 32, 10)
    images = Model(name="cnn", build=cnn, input_shape=(1, 8, 8), num_outputs=10)
    measured = compared(
        "MLP 64-32-10, GGN", small, drawn(40, (1, 8, 8)), Objective(curvature="ggn")
    )
    measured += compared("CNN", images, drawn(10, (1, 8, 8)), Objective())
    for count in (10, 100, 1000):
        measured += compared("MLP 64-32-10", small, drawn(count, (1, 8, 8)), Objective())
    return measured
