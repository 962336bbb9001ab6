"""Worlds whose answers are known in closed form, shared by the tests of this folder.

Nothing here calls the code under test to get a number: clients answer by numpy.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import bcfl
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import LikelihoodAssociation
from bcfl.protocol.answers import ClientInfo, Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.evidence import EvidenceSum
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.rounds.round import RoundConfig, server_round
from bcfl.rounds.state import FederationState
from experiments.datasets import load
from experiments.models import linear

EXACT_MAP = Objective(prior_weight=1.0, curvature="ggn", curvature_samples=None)


@dataclass(frozen=True)
class LinearWorld:
    """Linear-Gaussian clients, y = X w + unit noise, that see new data in each round.

    The columns of every X are orthogonal, so that the exact curvature is diagonal.

    Attributes:
        data: by round, then by client: (X, y).
        prior_means: (clusters, parameters).
        prior_precisions: (clusters,).
    """

    data: tuple
    prior_means: np.ndarray
    prior_precisions: np.ndarray

    @classmethod
    def drawn(cls, seed, clients=3, clusters=2, rounds=3, parameters=2):
        random = np.random.default_rng(seed)
        names = [f"c{index}" for index in range(clients)]
        truth = random.normal(size=(clusters, parameters))
        data = []
        for _ in range(rounds):
            shards = {}
            for index, name in enumerate(names):
                rows = [int(n) for n in random.integers(1, 4, size=parameters)]
                design = np.zeros((sum(rows), parameters))
                design[np.arange(sum(rows)), np.repeat(np.arange(parameters), rows)] = (
                    random.uniform(0.3, 1.2, size=sum(rows))
                )
                noise = random.normal(size=len(design))
                shards[name] = (design, design @ truth[index % clusters] + noise)
            data.append(shards)
        means = truth + random.normal(scale=0.7, size=truth.shape)
        return cls(tuple(data), means, random.uniform(0.5, 2.0, size=clusters))

    @property
    def clients(self):
        return tuple(sorted(self.data[0]))

    @property
    def num_clusters(self):
        return len(self.prior_means)

    @property
    def model(self):
        return linear(self.prior_means.shape[1], 1, likelihood="gaussian", bias=False)

    def of(self, client, round):
        """Data of a client; the last round's data are seen again in all later rounds."""
        return self.data[min(round, len(self.data) - 1)][client]

    def answer(self, requests, models, round):
        return {r: self._one(r, models, round) for r in requests}

    def _one(self, request, models, round):
        design, values = self.of(request.client, round)
        match request:
            case Describe():
                return ClientInfo({"train": len(values)}, (design.shape[1],))
            case Train():
                prior = models[request.start]
                mean = prior.mean(self.model).numpy()
                precision = prior.prior_precision(self.model).numpy()
                mode, _ = dense_posterior(mean, precision, [(design, values)])
                curvature = torch.from_numpy(np.diag(design.T @ design).copy())
                return Trained(
                    mean=torch.from_numpy(mode),
                    buffers=torch.empty(0),
                    curvature=curvature,
                    num_samples=len(values),
                )
            case Score():
                means = {key: models[key].mean(self.model).numpy() for key in request.models}
                return {key: self._score(request, mean, round) for key, mean in means.items()}

    def _score(self, request, mean, round):
        design, values = self.of(request.client, round)
        residual = values - design @ mean
        log_likelihood = -0.5 * float(residual @ residual + len(values) * math.log(2 * math.pi))
        if request.statistic == Loss():
            return LossSum(-log_likelihood, 0.0, len(values))
        slope = torch.from_numpy(design.T @ residual)
        bend = torch.from_numpy(np.diag(design.T @ design).copy())
        return EvidenceSum(log_likelihood, slope, bend, len(values))

    def start(self, order=None):
        """One hypothesis with the prior of each cluster; `order` relabels the clusters."""
        order = range(self.num_clusters) if order is None else order
        clusters = tuple(
            from_initial(
                self.model,
                f"prior {index}",
                torch.from_numpy(self.prior_means[index]),
                torch.empty(0),
                float(self.prior_precisions[index]),
            )
            for index in order
        )
        unseen = Association.unseen(self.clients, self.num_clusters)
        return FederationState(
            hypotheses=HypothesisSet((Hypothesis(clusters=clusters, association=unseen),))
        )

    def method(self, tracker, *, fusion="exact", memory="accumulate", **policy):
        chosen = {"temperature": 1.0, **policy}
        association = LikelihoodAssociation(
            num_clusters=self.num_clusters, objective=EXACT_MAP, **chosen
        )
        return bcfl.Method(
            policy=association,
            tracker=tracker,
            aggregation=bcfl.Aggregation(fusion=fusion, memory=memory),
        )

    def run(self, method, rounds, state=None):
        """States after each round."""
        state = self.start() if state is None else state
        states = []
        for _ in range(rounds):
            state, _ = server_round(
                method, self.model, self, state, RoundConfig(seed=0, evaluate=False)
            )
            states.append(state)
        return states


def dense_posterior(mean, precision, shards):
    """Mean and covariance given all shards at once, by dense linear algebra."""
    prior = np.diag(np.broadcast_to(precision, mean.shape))
    designs = np.concatenate([design for design, _ in shards]) if shards else np.zeros((0, 1))
    if not len(designs):
        return mean.copy(), np.linalg.inv(prior)
    values = np.concatenate([values for _, values in shards])
    total = prior + designs.T @ designs
    return np.linalg.solve(total, prior @ mean + designs.T @ values), np.linalg.inv(total)


def path_of(history, index):
    """Labels of all rounds that led to hypothesis `index` of the last snapshot."""
    path = []
    for snapshot in reversed(history):
        path.append(tuple(map(int, snapshot.associations[index].labels)))
        (index,) = snapshot.parents[index]
    return tuple(reversed(path))


def by_path(state):
    """Hypotheses of a state by their history of associations."""
    found = {path_of(state.history, i): h for i, h in enumerate(state.hypotheses)}
    assert len(found) == len(state.hypotheses)
    return found


class SoftmaxRegression:
    """Softmax regression with offsets in plain numpy; weights are (outputs, inputs + 1)."""

    @staticmethod
    def arrays(clients):
        """Inputs with a column of ones, and labels, of each client."""
        return {
            data.client: (
                np.column_stack([data.views["train"].inputs, np.ones(len(data.views["train"]))]),
                data.views["train"].targets.numpy(),
            )
            for data in clients
        }

    @staticmethod
    def weights(flat, outputs):
        """Weights with the offsets as last column, from the flat layout."""
        flat = flat.numpy()
        return np.column_stack([flat[:-outputs].reshape(outputs, -1), flat[-outputs:]])

    @staticmethod
    def probabilities(weights, inputs):
        logits = inputs @ weights.T
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    @classmethod
    def mean_loss(cls, weights, inputs, labels):
        return -np.log(cls.probabilities(weights, inputs)[np.arange(len(labels)), labels]).mean()

    @classmethod
    def trained(cls, weights, data, batches, learning_rate, momentum=0.0):
        """SGD with a velocity that starts at zero."""
        inputs, labels = data
        velocity = np.zeros_like(weights)
        for batch in batches:
            excess = cls.probabilities(weights, inputs[batch])
            excess[np.arange(len(batch)), labels[batch]] -= 1
            velocity = momentum * velocity + excess.T @ inputs[batch] / len(batch)
            weights = weights - learning_rate * velocity
        return weights


def turned_clients(sizes, seed=0):
    """Clients of three groups, whose classes are turned against one another; four inputs."""
    random = np.random.default_rng(seed)
    centres = random.normal(scale=1.5, size=(3, 4))
    clients = []
    for index, size in enumerate(sizes):
        labels = random.integers(3, size=size)
        inputs = centres[labels] + random.normal(size=(size, 4))
        turned = (labels + index % 3) % 3
        clients.append(bcfl.ClientData.from_arrays(f"c{index}", (inputs, turned), group=index % 3))
    return clients


def states_of(federation, rounds):
    """(state, record) after each round."""
    seen = []
    federation.run(rounds, on_round=lambda state, record: seen.append((state, record)))
    return seen


def digits_clients(sizes, groups=2, shuffled=None):
    """Clients with 8x8 digits; the labels of group g are turned by 5 g, so that groups differ."""
    samples = load("optdigits")
    order = np.random.default_rng(7).permutation(len(samples))
    clients, start = [], 0
    for index, size in enumerate(sizes):
        rows = order[start : start + size + 10]
        start += size + 10
        group = index % groups
        inputs = samples.inputs[rows].reshape(-1, 64)
        targets = (samples.targets[rows] + 5 * group) % 10
        train, test = (inputs[:size], targets[:size]), (inputs[size:], targets[size:])
        clients.append(bcfl.ClientData.from_arrays(f"c{index:02}", train, test, group))
    if shuffled is not None:
        clients = [clients[i] for i in np.random.default_rng(shuffled).permutation(len(clients))]
    return clients


def assert_same_bits(ours, theirs):
    """Hypothesis sets that are equal to the last bit, weights, keys and models."""
    assert len(ours) == len(theirs)
    assert ours.log_weights.tolist() == theirs.log_weights.tolist()
    np.testing.assert_equal(ours.log_captured_mass, theirs.log_captured_mass)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.association.labels, other.association.labels)
        np.testing.assert_array_equal(one.association.serving, other.association.serving)
        for mine, yours in zip(one.clusters, other.clusters, strict=True):
            assert mine.key == yours.key
            for block, twin in zip(mine.blocks, yours.blocks, strict=True):
                assert torch.equal(block.gaussian.mean, twin.gaussian.mean)
                assert torch.equal(block.gaussian.precision, twin.gaussian.precision)
                assert torch.equal(block.prior.precision, twin.prior.precision)
                assert torch.equal(block.buffers, twin.buffers)


@pytest.fixture(name="softmax")
def softmax_fixture():
    """Softmax regression in plain numpy."""
    return SoftmaxRegression


@pytest.fixture(name="turned_clients")
def turned_clients_fixture():
    """Clients of three groups, from their numbers of samples."""
    return turned_clients


@pytest.fixture(name="states_of")
def states_of_fixture():
    """(state, record) after each round of a federation."""
    return states_of


@pytest.fixture(name="digits_clients")
def digits_clients_fixture():
    """Clients with handwritten digits, from their numbers of training samples."""
    return digits_clients


@pytest.fixture(name="assert_same_bits")
def assert_same_bits_fixture():
    """Check that two hypothesis sets are equal to the last bit."""
    return assert_same_bits


@pytest.fixture(name="linear_world")
def linear_world_fixture():
    """Draw a linear-Gaussian world from a seed."""
    return LinearWorld.drawn


@pytest.fixture(name="by_path")
def by_path_fixture():
    """Hypotheses of a state by their history of associations."""
    return by_path


@pytest.fixture(name="dense_posterior")
def dense_posterior_fixture():
    """Mean and covariance given all shards at once."""
    return dense_posterior


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are quicker on one thread, and tests may run in parallel."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
