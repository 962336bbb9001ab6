"""Many nodes on Flower's simulation engine: our training exchange beside Flower's own FedAvg.

Both run on the same engine in turn, with the same nodes, network and steps. A round of theirs
configures, sends, receives and aggregates; of ours the exchange of the trainings counts.
"""

from functools import cache
from resource import RUSAGE_SELF, getrusage
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
from bcfl.data.clients import TRAIN
from bcfl.executors import RemoteExecutor, Site, model_digest
from bcfl.flower import node_app
from bcfl.flower.grid import FlowerGrid
from tests.bench.federation.lean import LeanLoop
from tests.bench.federation.rounds import STEP
from tests.bench.row import Row

SAMPLES, WARM = 50, 2
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


def memory():
    """Most memory of this process so far, MB."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


def ours(grid, count, rounds):
    """Seconds of each training exchange, bytes of a round, and memory after each."""
    there = federation(count)
    executor = RemoteExecutor(
        grid=FlowerGrid(grid), setup="", digest=model_digest(there.model), patience=600.0
    )
    used = []
    run = there.run(rounds, executor=executor, on_round=lambda state, record: used.append(memory()))
    failures = [text for record in run.records for text in record.ledger.failures]
    if failures:
        raise RuntimeError(f"{len(failures)} requests failed, {failures[0]}")
    seconds = [record.ledger.seconds["train"] for record in run.records]
    sent = executor.traffic
    return seconds, (sent.bytes_down + sent.bytes_up) / rounds, used


def theirs(grid, count, rounds):
    """Seconds of each round of Flower's FedAvg, and the bytes of its arrays in one."""
    strategy = FedAvg(min_train_nodes=count, min_available_nodes=count)
    arrays, seconds = ArrayRecord(network().state_dict()), []
    for number in range(1, rounds + 1):
        started = perf_counter()
        asked = strategy.configure_train(number, arrays, ConfigRecord(), grid)
        replies = list(grid.send_and_receive(asked))
        if len(replies) != count or any(reply.has_error() for reply in replies):
            raise RuntimeError(f"{len(replies)} replies of {count} clients, or errors among them")
        arrays, _ = strategy.aggregate_train(number, replies)
        seconds.append(perf_counter() - started)
    return seconds, 2 * count * sum(array.numpy().nbytes for array in arrays.values())


def measured(count, rounds):
    """The row; the first rounds, in which workers start, do not count."""
    client, server, found = node_app(open_node), ServerApp(), []
    client.train()(train)

    @server.main()
    def main(grid, context):
        del context
        found.extend((theirs(grid, count, rounds), ours(grid, count, rounds)))

    resources = {"num_cpus": 1, "num_gpus": 0.0}
    run_simulation(server, client, count, backend_config={"client_resources": resources})
    (slow, their_bytes), (fast, our_bytes, used) = found
    mine, other = (1e3 * median(seconds[WARM:]) for seconds in (fast, slow))
    about = (
        f"{count} simulated nodes, {rounds} rounds: training exchange of ours, then Flower's FedAvg"
        f" (bytes {our_bytes / their_bytes:.2f}x, memory +{used[-1] - used[WARM]:.0f} MB)"
    )
    return Row(about, mine, other, other / mine, "a message per node through the engine")
