"""Rounds of FedAvg by Flower's simulation engine, and ours before them; needs Flower and Ray.

Clients train by the lean loop, the fastest plain torch we know: what is left is the engine. Every
worker makes the samples once, in the round that is not counted; only models travel.
"""

from functools import cache
from importlib.metadata import version
from statistics import median
from time import perf_counter

import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from bcfl.data.names import TRAIN
from bcfl.runtime.devices import limited_threads
from tests.bench.federation.lean import LeanLoop, network
from tests.bench.federation.rounds import CNN, STEP, Rounds, images
from tests.bench.row import Row

WORKERS = 2
LIMIT = "the convolutions themselves"
client_app = ClientApp()


@cache
def loops(count, samples):
    """A lean loop for every client, in a worker."""
    torch.set_num_threads(1)
    steps = (STEP.local_steps, STEP.batch_size, STEP.learning_rate, STEP.momentum)
    views = [data.views[TRAIN] for data in images(count, samples)]
    return [LeanLoop(network, [(view.inputs, view.targets)], *steps) for view in views]


@client_app.train()
def train(message, context):
    """Local training; the reply holds the trained tensors and the number of samples."""
    samples = message.content["config"]["samples"]
    place = context.node_config
    loop = loops(place["num-partitions"], samples)[place["partition-id"]]
    start = message.content["arrays"].to_torch_state_dict()
    (trained,) = loop.train(list(start.values()))
    arrays = ArrayRecord(dict(zip(start, trained, strict=True)))
    content = {"arrays": arrays, "metrics": MetricRecord({"num-examples": samples})}
    return Message(RecordDict(content), reply_to=message)


class FlowerRounds:
    """One round after the other of Flower's own FedAvg, without its evaluation."""

    def __init__(self, grid, count, samples):
        self.strategy = FedAvg(min_train_nodes=count, min_available_nodes=count)
        self.grid, self.count, self.round = grid, count, 0
        self.config = ConfigRecord({"samples": samples})
        self.arrays = ArrayRecord(network().state_dict())

    def __call__(self):
        self.round += 1
        asked = self.strategy.configure_train(self.round, self.arrays, self.config, self.grid)
        replies = list(self.grid.send_and_receive(asked))
        errors = [reply.error.reason for reply in replies if reply.has_error()]
        if errors or len(replies) != self.count:
            raise RuntimeError(f"{len(replies)} replies of {self.count} clients, {errors[:1]}")
        self.arrays, _ = self.strategy.aggregate_train(self.round, replies)


def milliseconds(work, repeats):
    """Wall time of each repetition after a first one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        started = perf_counter()
        work()
        times.append(1e3 * (perf_counter() - started))
    return times


def measured(count, samples, rounds, threads):
    """The row; ours come first, since Ray's idle workers would slow them down."""
    theirs, server_app = [], ServerApp()
    with limited_threads(threads):
        ours = milliseconds(Rounds("fedavg", images(count, samples), CNN, threads), rounds)

    @server_app.main()
    def main(grid, context):
        theirs.extend(milliseconds(FlowerRounds(grid, count, samples), rounds))

    resources = {
        "init_args": {"num_cpus": WORKERS},
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    }
    run_simulation(server_app, client_app, count, backend_config=resources)
    fast, slow = median(ours), median(theirs)
    about = f"{CNN.name}, {count} clients x {samples}, one round of FedAvg"
    name = f"{about}: ours, then Flower {version('flwr')}'s simulation, {WORKERS} workers"
    return Row(name, fast, slow, slow / fast, LIMIT)
