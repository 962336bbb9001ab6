"""Many nodes on Flower's simulation engine: our training exchange beside Flower's own FedAvg.

Both run on one engine with the same nodes, network and steps, a round of theirs after each of ours,
so that a load on the machine meets both. A round of theirs configures, sends, receives and
aggregates; of ours the exchange of the trainings counts.
"""

import os
from functools import cache
from statistics import median
from time import perf_counter

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn

from bcfl import ClientData, Federation, Model, methods
from bcfl.data.names import TRAIN
from bcfl.executors import RemoteExecutor, Site, model_digest
from bcfl.flower import node_app
from bcfl.flower.grid import FlowerGrid
from tests.bench.federation.lean import LeanLoop
from tests.bench.federation.rounds import STEP
from tests.bench.memory import held
from tests.bench.row import Row

SAMPLES, WARM, FULL = 50, 2, 5
STEPS = (STEP.local_steps, STEP.batch_size, STEP.learning_rate, STEP.momentum)


def network():
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


MODEL = Model(name="mlp", build=network, input_shape=(64,), num_outputs=10)


@cache
def federation(count):
    """Clients of noise, made once in every worker."""
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    clients = [
        ClientData.from_arrays(
            f"c{number:03}",
            (
                random.normal(size=(SAMPLES, 64)).astype(np.float32),
                random.integers(0, 10, SAMPLES),
            ),
        )
        for number in range(count)
    ]
    method = methods.build("fedavg", objective=STEP)
    return Federation(clients, MODEL, method, device="cpu", evaluate=False, executor="loop")


@cache
def engine(count):
    return federation(count).executor_of(1)


@cache
def loops(count):
    views = [data.views[TRAIN] for data in federation(count).clients]
    return [LeanLoop(network, [(view.inputs, view.targets)], *STEPS) for view in views]


def open_node(setup, config):
    """The client of a node."""
    count, place = config["num-partitions"], config["partition-id"]
    name = federation(count).answering[place]
    return Site(engine(count), (name,), federation(count).model)


def train(message, context):
    """Local training for Flower's own FedAvg."""
    place = context.node_config
    loop = loops(place["num-partitions"])[place["partition-id"]]
    start = message.content["arrays"].to_torch_state_dict()
    (trained,) = loop.train(list(start.values()))
    arrays = ArrayRecord(dict(zip(start, trained, strict=True)))
    content = {"arrays": arrays, "metrics": MetricRecord({"num-examples": SAMPLES})}
    return Message(RecordDict(content), reply_to=message)


class Theirs:
    """One round after the other of Flower's FedAvg, with seconds and the bytes of its arrays."""

    def __init__(self, grid, count):
        self.strategy = FedAvg(min_train_nodes=count, min_available_nodes=count)
        self.grid, self.count, self.seconds = grid, count, []
        self.arrays = ArrayRecord(network().state_dict())
        self.bytes = 2 * count * sum(array.numpy().nbytes for array in self.arrays.values())

    def __call__(self):
        started, number = perf_counter(), len(self.seconds) + 1
        asked = self.strategy.configure_train(number, self.arrays, ConfigRecord(), self.grid)
        replies = list(self.grid.send_and_receive(asked))
        if len(replies) != self.count or any(reply.has_error() for reply in replies):
            raise RuntimeError(f"{len(replies)} replies of {self.count} clients, or errors in them")
        self.arrays, _ = self.strategy.aggregate_train(number, replies)
        self.seconds.append(perf_counter() - started)


def both(grid, count, rounds):
    """Rounds of ours and of theirs in turn: seconds of each, bytes of a round, and MB held."""
    there, theirs, used = federation(count), Theirs(grid, count), []
    executor = RemoteExecutor(
        grid=FlowerGrid(grid), setup="", digest=model_digest(there.model), patience=600.0
    )

    def after(state, record):
        used.append(held(os.getpid()))
        theirs()

    run = there.run(rounds, executor=executor, on_round=after)
    failures = [text for record in run.records for text in record.ledger.failures]
    if failures:
        raise RuntimeError(f"{len(failures)} requests failed, {failures[0]}")
    seconds = [record.ledger.seconds["train"] for record in run.records]
    sent = executor.traffic
    bytes = (sent.bytes_down + sent.bytes_up) / rounds / theirs.bytes
    return seconds, theirs.seconds, bytes, used


def measured(count, rounds):
    """The row; the first rounds, in which workers start, do not count."""
    client, server, found = node_app(open_node), ServerApp(), []
    client.train()(train)

    @server.main()
    def main(grid, context):
        del context
        found.extend(both(grid, count, rounds))

    resources = {"num_cpus": 1, "num_gpus": 0.0}
    run_simulation(server, client, count, backend_config={"client_resources": resources})
    *times, bytes, used = found
    mine, other = (1e3 * median(seconds[WARM:]) for seconds in times)
    ratio = median(slow / fast for fast, slow in list(zip(*times, strict=True))[WARM:])
    (server, all), (server_then, all_then) = used[min(FULL, rounds) - 1], used[-1]
    about = (
        f"{count} simulated nodes, {rounds} rounds: training exchange of ours, then Flower's FedAvg"
        f" (bytes {bytes:.2f}x; MB held after round {FULL} and the last: server {server:.0f}, "
        f"{server_then:.0f}, with its workers {all:.0f}, {all_then:.0f})"
    )
    return Row(about, mine, other, ratio, "a message per node through the engine")
