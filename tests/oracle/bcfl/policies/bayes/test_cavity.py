"""IFCA scored by cavities and folds against a plain statement, with full and partial participation.

By cavities, a client that contributed to a cluster in the cluster's last update is scored there by
the sample-weighted mean of the other contributors' local models; one that contributed alone, by the
model from which that update started. Cross-fitted, it is scored by the models of its fold, which
the clients of all other folds train.
"""

from collections import Counter

import numpy as np
import pytest
import torch

import bcfl
from bcfl import methods
from bcfl.executors.batches import training_batches
from bcfl.protocol.objective import Objective
from experiments.models import linear

ROUNDS, SEED, RATE = 6, 5, 0.2
SIZES = (20, 33, 12, 41, 20, 27, 9)
OBJECTIVE = Objective(local_steps=4, batch_size=10, learning_rate=RATE, momentum=0.0)


def federation_of(clients, num_clusters, scored_by, client_fraction):
    method = methods.ifca(num_clusters=num_clusters, scored_by=scored_by, objective=OBJECTIVE)
    return bcfl.Federation(
        clients,
        linear(4, 3),
        method,
        SEED,
        client_fraction=client_fraction,
        device="cpu",
        dtype=torch.float64,
    )


def batches_of(data, round):
    return {
        client: training_batches(len(y), 10, 4, SEED, round, client).numpy()
        for client, (_, y) in data.items()
    }


class CavityIFCA:
    """Models of the clusters, what contributed to each last, and what that update started from."""

    def __init__(self, softmax, models):
        self.softmax = softmax
        self.models = list(models)
        self.before = list(models)
        self.contributions = [{} for _ in models]
        self.served = {}

    def scored_by(self, client, cluster):
        others = {c: own for c, own in self.contributions[cluster].items() if c != client}
        if client not in self.contributions[cluster]:
            return self.models[cluster]
        if not others:
            return self.before[cluster]
        return sum(n * w for n, w in others.values()) / sum(n for n, _ in others.values())

    def round(self, data, batches):
        made = [{} for _ in self.models]
        for client, (inputs, labels) in data.items():
            losses = [
                self.softmax.mean_loss(self.scored_by(client, k), inputs, labels)
                for k in range(len(self.models))
            ]
            cluster = self.served[client] = int(np.argmin(losses))
            start = self.models[cluster]
            trained = self.softmax.trained(start, data[client], batches[client], RATE)
            made[cluster][client] = (len(labels), trained)
        for cluster, parts in enumerate(made):
            if parts:
                self.before[cluster] = self.models[cluster]
                self.contributions[cluster] = parts
                total = sum(n for n, _ in parts.values())
                self.models[cluster] = sum(n * w for n, w in parts.values()) / total


class CrossfitIFCA:
    """Models of the clusters, and of each fold's own clusters; both move to means of clients."""

    def __init__(self, softmax, models, fold_of):
        self.softmax, self.fold_of = softmax, fold_of
        self.models = list(models)
        self.without = {fold: list(models) for fold in set(fold_of.values())}
        self.served = {}

    def round(self, data, batches):
        for client, sample in data.items():
            own = self.without[self.fold_of[client]]
            self.served[client] = int(np.argmin([self.softmax.mean_loss(m, *sample) for m in own]))
        for models, left_out in ((self.models, None), *((m, f) for f, m in self.without.items())):
            for cluster, start in enumerate(models):
                members = [
                    c for c in data if self.served[c] == cluster and self.fold_of[c] != left_out
                ]
                trained = [self.softmax.trained(start, data[c], batches[c], RATE) for c in members]
                sizes = [len(data[c][1]) for c in members]
                if members:
                    models[cluster] = np.average(trained, axis=0, weights=sizes)


@pytest.mark.parametrize("num_clusters", [2, 3])
@pytest.mark.parametrize("client_fraction", [1.0, 0.6])
def test_cross_fitting_against_numpy(
    turned_clients, states_of, softmax, num_clusters, client_fraction
):
    clients = turned_clients(SIZES)
    federation = federation_of(clients, num_clusters, "crossfit", client_fraction)
    start = federation.initial_state().hypotheses.best.clusters
    models = [softmax.weights(c.mean(federation.model), 3) for c in start]
    rounds = list(states_of(federation, ROUNDS))
    keys = {
        data.client: tuple(
            state.hypotheses.best.cavities[data.client, k].key
            for state, _ in rounds
            for k in range(num_clusters)
        )
        for data in clients
    }
    assert sorted(Counter(keys.values()).values()) == [1, 2, 2, 2]
    plain, data = CrossfitIFCA(softmax, models, keys), softmax.arrays(clients)
    for round, (state, record) in enumerate(rounds):
        present = {client: data[client] for client in record.participants}
        plain.round(present, batches_of(present, round))
        best = state.hypotheses.best
        assert {c: best.association.label(c) for c in plain.served} == plain.served
        for (client, cluster), cavity in best.cavities.items():
            measured = softmax.weights(cavity.mean(federation.model), 3)
            right = plain.without[keys[client]][cluster]
            np.testing.assert_allclose(measured, right, rtol=0, atol=1e-11)
        for ours, theirs in zip(best.clusters, plain.models, strict=True):
            measured = softmax.weights(ours.mean(federation.model), 3)
            np.testing.assert_allclose(measured, theirs, rtol=0, atol=1e-11)
    if client_fraction == 1.0:
        # Folds that share a model share its trainings, as all do in the first round.
        first, *others = [record.ledger.trainings_run for _, record in rounds]
        assert first == len(SIZES)
        assert all(len(SIZES) < number <= 4 * len(SIZES) for number in others)


@pytest.mark.parametrize("num_clusters", [2, 3, 5])
@pytest.mark.parametrize("client_fraction", [1.0, 0.6])
def test_against_numpy(turned_clients, states_of, softmax, num_clusters, client_fraction):
    clients = turned_clients(SIZES)
    federation = federation_of(clients, num_clusters, "cavity", client_fraction)
    start = federation.initial_state().hypotheses.best.clusters
    plain = CavityIFCA(softmax, [softmax.weights(c.mean(federation.model), 3) for c in start])
    data, differing = softmax.arrays(clients), 0
    for round, (state, record) in enumerate(states_of(federation, ROUNDS)):
        present = {client: data[client] for client in record.participants}
        plain.round(present, batches_of(present, round))
        best = state.hypotheses.best
        assert {c: best.association.label(c) for c in plain.served} == plain.served
        for ours, theirs in zip(best.clusters, plain.models, strict=True):
            np.testing.assert_allclose(
                softmax.weights(ours.mean(federation.model), 3), theirs, rtol=0, atol=1e-11
            )
        for (client, cluster), cavity in best.cavities.items():
            right = plain.scored_by(client, cluster)
            measured = softmax.weights(cavity.mean(federation.model), 3)
            np.testing.assert_allclose(measured, right, rtol=0, atol=1e-11)
            differing += not np.allclose(right, plain.models[cluster])
    assert differing > 0


def test_the_download_of_cavities_is_in_the_ledger(turned_clients):
    """A client that stays needs its cavity to score, and its cluster's model to train."""
    clients = turned_clients(SIZES)
    down, labels = {}, {}
    for scored_by in ("cluster", "cavity"):
        method = methods.ifca(num_clusters=2, scored_by=scored_by, objective=OBJECTIVE)
        run = bcfl.Federation(clients, linear(4, 3), method, device="cpu").run(2)
        down[scored_by] = [record.ledger.bytes_down for record in run.records]
        labels[scored_by] = [r.snapshot.associations[0].labels for r in run.records]
    stayed = int((labels["cavity"][0] == labels["cavity"][1]).sum())
    assert down["cavity"][0] == down["cluster"][0]
    assert down["cavity"][1] - down["cluster"][1] == 4 * 15 * stayed > 0
