"""Additive parameter decomposition: sparse adaptive parts, and a predictor for each time step.

Yoon, Kim, Yang and Hwang (2020): an L1 term leaves few adaptive parameters different from zero, and
a time step is predicted with its own mask and adaptive part on today's shared parameters.
"""

import numpy as np
import pytest
import torch
from torch.nn.utils import vector_to_parameters

from bcfl import Federation
from bcfl.data.streams import Schedule, num_steps, view_name
from experiments.scores.retention import Retention

ROUNDS = 8
SHARED, ADAPTIVE = "original0", "original2"


@pytest.fixture
def outcome(divide, perceptron, build_method):
    """Clients, what a run leaves, and each client's model at the end of each time step."""
    clients = divide("stream", steps=4, clients=4, samples_per_client=100)
    schedule, past = Schedule.of(clients, ROUNDS), {}

    def note(state, record):
        best = state.hypotheses.best
        for client in best.association.clients:
            cluster = best.clusters[best.association.label(client)]
            past[client, schedule.step(state.round - 1)] = cluster

    recipe = build_method("apd", local_steps=40, batch_size=10, momentum=0.0, learning_rate=0.1)
    run = Federation(clients, perceptron, recipe, seed=0).run(ROUNDS, on_round=note)
    return clients, run, past


def places(model, ending):
    """Where the parameters with an ending of their names lie."""
    return torch.cat(
        [
            torch.arange(slot.start, slot.stop)
            for slot in model.layout.parameters
            if slot.name.endswith(ending)
        ]
    )


def accuracy(model, mean, view):
    network = model.build().eval()
    vector_to_parameters(mean, network.parameters())
    with torch.no_grad():
        return float((network(view.inputs).argmax(1) == view.targets).double().mean())


def test_adaptive_parts_have_zeros(outcome):
    _, run, _ = outcome
    for cluster in run.hypotheses.best.clusters:
        adaptive = cluster.mean(run.model)[places(run.model, ADAPTIVE)]
        assert (adaptive == 0).double().mean() > 0.01


def test_earlier_steps_are_predicted_with_their_own_parts(outcome):
    clients, run, past = outcome
    shared = places(run.model, SHARED)
    today = run.hypotheses.best.clusters[0].mean(run.model)[shared]
    scores = []
    for step in range(num_steps(clients) - 1):
        for client in clients:
            mean = past[client.client, step].mean(run.model).clone()
            mean[shared] = today
            scores.append(accuracy(run.model, mean, client.views[view_name("test", step)]))
    kept = Retention.of(run.model, run.hypotheses.best, clients).kept
    assert kept >= np.mean(scores) - 1e-9
