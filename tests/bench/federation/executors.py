"""Side-by-side work against one client after the other: one round, interleaved, one thread."""

from statistics import median
from time import process_time

import numpy as np
import torch
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.executors import BatchedExecutor, LoopExecutor
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Score, Train
from bcfl.runtime.devices import limited_threads
from experiments.models import mlp
from tests.bench.row import Row

REPEATS, MODELS = 3, 4
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
    models = {one.key: one for one in births}
    keys = tuple(models)
    loop = LoopExecutor.on(clients, model, 0, CPU, torch.float32)
    batched = BatchedExecutor.on(clients, model, 0, CPU, torch.float32)
    work = {
        "training": [Train(c.client, keys[i % MODELS], objective) for i, c in enumerate(clients)],
        f"scoring {MODELS} models": [Score(c.client, keys) for c in clients],
    }
    rows = []
    for what, asked in work.items():
        pairs = [
            (seconds(batched, asked, models), seconds(loop, asked, models)) for _ in range(REPEATS)
        ]
        ours, theirs = (1e3 * median(pair[i] for pair in pairs) for i in (0, 1))
        title = f"{name}, {len(clients)} clients, {what}: side by side, then one by one"
        rows.append(Row(title, ours, theirs, theirs / ours, "batched matrix products"))
    return rows


def run():
    """MLP and CNN on images of 8 x 8, then the MLP with 10 to 1,000 clients."""
    with limited_threads(1):
        return rows()


def rows():
    small = mlp((1, 8, 8), 32, 10)
    images = Model("cnn", cnn, (1, 8, 8), 10)
    found = compared("MLP 64-32-10, GGN", small, drawn(40, (1, 8, 8)), Objective(curvature="ggn"))
    found += compared("CNN", images, drawn(10, (1, 8, 8)), Objective())
    for count in (10, 100, 1000):
        found += compared("MLP 64-32-10", small, drawn(count, (1, 8, 8)), Objective())
    return found
