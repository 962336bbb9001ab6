"""FedAvg: the sample-weighted mean as a fusion of Gaussians, against plain numpy statements."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import bcfl
from bcfl import methods
from bcfl.aggregation.aggregation import Aggregation
from bcfl.executors.batches import training_batches
from bcfl.policies import FedAvg
from bcfl.protocol.answers import ClientInfo, Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Describe
from bcfl.rounds.round import RoundConfig, server_round
from bcfl.rounds.state import initial_state
from experiments.models import linear
from posteriors import DiagonalGaussian, LocalPosterior, fuse

OBJECTIVE = Objective(local_steps=7, batch_size=8, learning_rate=0.15, momentum=0.9)


class Scripted:
    """Clients that answer every training with a given model.

    `trained` holds parameters, number of samples and curvature of each client.
    """

    def __init__(self, trained):
        self.trained = trained

    def answer(self, requests, models, round):
        return {request: self._one(request) for request in requests}

    def _one(self, request):
        mean, count, curvature = self.trained[request.client]
        if isinstance(request, Describe):
            return ClientInfo({"train": count}, (2,))
        return Trained(
            mean=torch.tensor(mean, dtype=torch.float64),
            buffers=torch.empty(0),
            curvature=curvature,
            num_samples=count,
        )


def aggregated(trained, fusion="precision_weighted", objective=OBJECTIVE):
    model = linear(2, 1, likelihood="gaussian", bias=False)
    method = bcfl.Method(policy=FedAvg(objective), aggregation=Aggregation(fusion=fusion))
    state = initial_state(method, model, sorted(trained), 0, torch.device("cpu"), torch.float64)
    after, _ = server_round(
        method, model, Scripted(trained), state, RoundConfig(seed=0, evaluate=False)
    )
    return after.hypotheses.best.clusters[0].mean(model).numpy()


MODELS = {"a": ((1.0, 2.0), 10), "b": ((3.0, -1.0), 30), "c": ((0.0, 4.0), 60)}


def with_curvature(curvature):
    return {client: (mean, count, curvature(count)) for client, (mean, count) in MODELS.items()}


def test_weighted_mean_by_hand():
    found = aggregated(with_curvature(lambda n: torch.tensor(float(n))))
    np.testing.assert_allclose(found, (1.0, 2.3), rtol=0, atol=1e-12)


def test_a_precision_of_n_for_each_parameter_is_the_weighted_mean():
    number = aggregated(with_curvature(lambda n: torch.tensor(float(n))))
    vector = aggregated(with_curvature(lambda n: torch.full((2,), float(n))))
    np.testing.assert_array_equal(number, vector)


def test_uniform_curvature_is_the_plain_mean():
    found = aggregated(with_curvature(lambda n: torch.tensor(1.0)))
    np.testing.assert_allclose(found, (4 / 3, 5 / 3), rtol=0, atol=1e-12)


def test_uniform_curvature_is_the_plain_mean_for_large_clients():
    """However many samples a client has, it counts as one."""
    many = {
        client: (mean, 1000 * count, torch.tensor(1.0)) for client, (mean, count) in MODELS.items()
    }
    np.testing.assert_allclose(aggregated(many), (4 / 3, 5 / 3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_fusion_with_precision_n_is_numpys_average(seed):
    random = np.random.default_rng(seed)
    means, counts = random.normal(size=(5, 7)), random.integers(1, 400, size=5)
    prior = DiagonalGaussian.isotropic(torch.zeros(7, dtype=torch.float64), 3.0)
    local = [
        LocalPosterior(
            mean=torch.from_numpy(m),
            curvature=torch.tensor(float(n)),
            used=None,
            num_samples=int(n),
        )
        for m, n in zip(means, counts, strict=True)
    ]
    found = fuse("precision_weighted", prior, local).posterior.mean
    np.testing.assert_allclose(found, np.average(means, axis=0, weights=counts), atol=1e-13)


@pytest.mark.parametrize("client_fraction", [1.0, 0.5])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_rounds_against_numpy(turned_clients, states_of, softmax, momentum, client_fraction):
    clients = turned_clients((20, 33, 12, 41, 5))
    objective = replace(OBJECTIVE, momentum=momentum)
    method = methods.build("fedavg", objective=objective)
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        method,
        9,
        client_fraction=client_fraction,
        device="cpu",
        dtype=torch.float64,
    )
    data = softmax.arrays(clients)
    start = one.initial_state().hypotheses.best.clusters[0].mean(one.model)
    weights = softmax.weights(start, 3)
    for round, (state, record) in enumerate(states_of(one, 5)):
        assert len(record.participants) == (5 if client_fraction == 1 else 3)
        total, count = np.zeros_like(weights), 0
        for client in record.participants:
            n = len(data[client][1])
            batches = training_batches(n, 8, 7, 9, round, client).numpy()
            total += n * softmax.trained(weights, data[client], batches, 0.15, momentum)
            count += n
        weights = total / count
        ours = state.hypotheses.best.clusters[0].mean(one.model)
        np.testing.assert_allclose(softmax.weights(ours, 3), weights, rtol=0, atol=1e-11)


def test_weight_decay_against_numpy(turned_clients, softmax):
    """The decay is added to the gradient before the velocity, offsets included."""
    clients = turned_clients((16,))
    objective = Objective(local_steps=3, batch_size=16, learning_rate=0.1, weight_decay=0.2)
    method = methods.build("fedavg", objective=objective)
    one = bcfl.Federation(clients, linear(4, 3), method, device="cpu", dtype=torch.float64)
    start = one.initial_state().hypotheses.best.clusters[0].mean(one.model)
    weights = softmax.weights(start, 3)
    inputs, labels = softmax.arrays(clients)["c0"]
    velocity = np.zeros_like(weights)
    for _ in range(3):
        excess = softmax.probabilities(weights, inputs) - np.eye(3)[labels]
        velocity = 0.9 * velocity + excess.T @ inputs / 16 + 0.2 * weights
        weights = weights - 0.1 * velocity
    ours = one.run(1).hypotheses.best.clusters[0].mean(one.model)
    np.testing.assert_allclose(softmax.weights(ours, 3), weights, rtol=0, atol=1e-12)


def normalised_network():
    """The running statistics of the one normalisation layer are those of the last batch."""
    return nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=1.0), nn.ReLU(), nn.Linear(5, 3)
    )


def test_running_statistics_of_all_samples_together(turned_clients):
    """After one full-batch step from a common start, pooling gives those of the pooled samples.

    With the number of samples as weight the pooled variance mixes the clients' (unbiased)
    variances; with clients of n samples each it is known from the pooled data.
    """
    sizes = (20, 33, 12)
    clients = turned_clients(sizes)
    model = bcfl.Model(name="normalised", build=normalised_network, input_shape=(4,), num_outputs=3)
    objective = Objective(local_steps=1, batch_size=100, learning_rate=0.1)
    method = methods.build("fedavg", objective=objective)
    one = bcfl.Federation(clients, model, method, device="cpu", dtype=torch.float64)
    start = one.initial_state().hypotheses.best.clusters[0].mean(model).numpy()
    weights, offsets = start[:20].reshape(5, 4), start[20:25]
    hidden = [data.views["train"].inputs.numpy() @ weights.T + offsets for data in clients]
    every = np.concatenate(hidden)
    within = sum(n * h.var(axis=0, ddof=1) for n, h in zip(sizes, hidden, strict=True)) / sum(sizes)
    between = every.var(axis=0) - sum(
        n * h.var(axis=0) for n, h in zip(sizes, hidden, strict=True)
    ) / sum(sizes)
    buffers = one.run(1).hypotheses.best.clusters[0].buffers(model).numpy()
    np.testing.assert_allclose(buffers[:5], every.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(buffers[5:], within + between, rtol=0, atol=1e-12)
    assert (between > 0.01 * within).all()


def test_a_client_of_one_sample_keeps_the_running_statistics(turned_clients):
    clients = turned_clients((1,))
    model = bcfl.Model(name="normalised", build=normalised_network, input_shape=(4,), num_outputs=3)
    method = methods.build("fedavg", objective=OBJECTIVE)
    one = bcfl.Federation(clients, model, method, device="cpu", dtype=torch.float64)
    start = one.initial_state().hypotheses.best.clusters[0]
    after = one.run(2).hypotheses.best.clusters[0]
    assert torch.equal(after.buffers(model), start.buffers(model))
    assert not torch.equal(after.mean(model), start.mean(model))


def test_blocks_of_global_scope_are_averaged_over_all_clusters(turned_clients, states_of):
    """One backbone for all and a classifier per cluster, both recomputed from what clients sent."""
    clients = turned_clients((20, 33, 12, 41))
    blocks = (bcfl.BlockSpec("body", "global", ("0.",)), bcfl.BlockSpec("head", "cluster", ("2.",)))
    model = bcfl.Model(
        name="two blocks",
        build=lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)),
        input_shape=(4,),
        num_outputs=3,
        blocks=blocks,
    )
    method = methods.build("ifca", num_clusters=2, objective=OBJECTIVE)
    one = bcfl.Federation(clients, model, method, device="cpu", dtype=torch.float64)
    sent = {}

    class Overheard:
        def answer(self, requests, models, round):
            outcomes = one.engine.answer(requests, models, round)
            sent.update({r.client: o for r, o in outcomes.items() if isinstance(o, Trained)})
            return outcomes

    state = one.initial_state()
    for _ in range(3):
        setting = RoundConfig(seed=0, evaluate=False)
        state, _ = server_round(one.method, model, Overheard(), state, setting)
        best = state.hypotheses.best
        counts = {c: float(t.num_samples) for c, t in sent.items()}
        for k, posterior in enumerate(best.clusters):
            members = [c for c in sent if best.association.label(c) == k]
            ours = posterior.mean(model).numpy()
            for part, names in ((slice(25), list(sent)), (slice(25, 43), members)):
                if names:
                    means = [sent[c].mean.numpy()[part] for c in names]
                    expected = np.average(means, axis=0, weights=[counts[c] for c in names])
                    np.testing.assert_allclose(ours[part], expected, rtol=0, atol=1e-13)
