"""Rounds of IFCA and of FedAvg out of FedBase's nodes and server; needs FedBase."""

from functools import reduce

import torch
from fedbase.nodes.node import node
from fedbase.server.server import server_class
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bcfl.data.names import TRAIN
from tests.bench.federation.lean import network
from tests.bench.federation.rounds import CPU, STEP


def node_of(number, data):
    """A client of FedBase with the samples of one of ours."""
    view, made = data.views[TRAIN], node(number, CPU)
    samples = TensorDataset(view.inputs, view.targets)
    made.assign_train(DataLoader(samples, batch_size=STEP.batch_size, shuffle=True))
    made.assign_objective(nn.CrossEntropyLoss())
    return made


def start(client, model):
    """Give a client a model and a fresh optimiser of it."""
    client.assign_model(model)
    client.assign_optim(
        torch.optim.SGD(client.model.parameters(), STEP.learning_rate, STEP.momentum)
    )


def train(clients):
    for client in clients:
        client.local_update_steps(STEP.local_steps, client.train_single_step)


def shares(clients):
    """Each client's part of all samples."""
    total = sum(client.data_size for client in clients)
    return [client.data_size / total for client in clients]


class FedAvg:
    """One round after the other."""

    def __init__(self, clients):
        self.server = server_class(CPU)
        self.server.assign_model(network())
        self.nodes = [node_of(number, data) for number, data in enumerate(clients)]
        for client in self.nodes:
            start(client, network())
        self.models = [client.model for client in self.nodes]
        self.server.distribute(self.models)
        self.shares = shares(self.nodes)

    def __call__(self):
        train(self.nodes)
        self.server.model.load_state_dict(self.server.aggregate(self.models, self.shares))
        self.server.distribute(self.models)


class IFCA:
    """One round after the other; a client's first model is the very model of its cluster."""

    def __init__(self, clients, clusters):
        self.server = server_class(CPU)
        self.nodes = [node_of(number, data) for number, data in enumerate(clients)]
        self.models = [network() for _ in range(clusters)]

    def __call__(self):
        members = {id(model): [] for model in self.models}
        for client in self.nodes:
            model = preferred(client, self.models)
            members[id(model)].append(client)
            start(client, model)
        train(self.nodes)
        for model in self.models:
            if of_model := members[id(model)]:
                self._merge(model, of_model)

    def _merge(self, model, members):
        trained = [client.model for client in members]
        mean = self.server.aggregate(trained, shares(members))
        self.server.distribute(trained, mean)
        model.load_state_dict(mean)


def preferred(client, models):
    """The winner of a knock-out between models; every comparison scores both of them."""

    def better(best, other):
        return other if client.local_train_loss(best) >= client.local_train_loss(other) else best

    return reduce(better, models)
