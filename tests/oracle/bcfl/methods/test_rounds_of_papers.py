"""Server rounds of every method with a paper equal a numpy statement of its equations."""

import numpy as np
import pytest
import torch

import bcfl
from tests.oracle.bcfl.methods import paper_methods as paper
from tests.recipes import built

SIZES = (20, 33, 12, 41, 9)
ROUNDS = 4


@pytest.fixture
def run(turned_clients, states_of):
    """Run a method by name: the samples of its clients, its start and its states."""

    def of(name, num_clusters=3, **settings):
        objective = bcfl.Objective(
            local_steps=paper.STEPS,
            batch_size=1000,
            learning_rate=paper.RATE,
            momentum=paper.MOMENTUM,
        )
        chosen = dict(
            num_clusters=num_clusters,
            objective=objective,
            proximal=paper.RHO,
            weight=paper.MU,
            contrast_temperature=paper.TAU,
            sharing=paper.LAMBDA,
            pull=paper.PULL,
            **settings,
        )
        clients = turned_clients(SIZES)
        model = bcfl.Model(
            name="two-layers",
            build=paper.network,
            input_shape=(paper.INPUTS,),
            num_outputs=paper.CLASSES,
        )
        one = bcfl.Federation(
            clients, model, built(name, **chosen), seed=3, device="cpu", dtype=torch.float64
        )
        data = [
            (d.views["train"].inputs.numpy(), d.views["train"].targets.numpy()) for d in one.clients
        ]
        start = models_of(one, one.initial_state())
        return data, start, [(models_of(one, s), labels_of(s)) for s, _ in states_of(one, ROUNDS)]

    return of


def models_of(federation, state):
    return [c.mean(federation.model).numpy() for c in state.hypotheses.best.clusters]


def labels_of(state):
    return [int(label) for label in state.hypotheses.best.association.labels]


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


def held_back(name, anchor):
    return [paper.proximal(anchor, paper.RHO)] if "prox" in name else []


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "fedavg-plus", "fedprox-plus"])
def test_methods_without_clusters(run, name):
    data, models, states = run(name)
    assert len(models) == (3 if name.endswith("plus") else 1)
    assert len(models) == 1 or not np.allclose(models[0], models[1])
    for ours, _ in states:
        models = [
            paper.weighted([paper.trained(m, d, held_back(name, m)) for d in data], SIZES)
            for m in models
        ]
        assert_equal(ours, models)


def test_local_training(run):
    data, (start,), states = run("local")
    models = [start] * len(data)
    for ours, labels in states:
        models = [paper.trained(m, d) for m, d in zip(models, data, strict=True)]
        assert labels == list(range(len(data)))
        assert_equal(ours, models)


def test_centralised_training(run, monkeypatch):
    monkeypatch.setattr(paper, "STEPS", paper.STEPS)
    data, (model,), states = run("centralised")
    pool = tuple(np.concatenate(parts) for parts in zip(*data, strict=True))
    monkeypatch.setattr(paper, "STEPS", paper.STEPS * len(data))
    for ours, labels in states:
        model = paper.trained(model, pool)
        assert labels == [0] * len(data)
        assert_equal(ours, [model])


def test_centralised_training_of_groups(run, monkeypatch):
    """The clients' groups are their numbers modulo 3."""
    steps = paper.STEPS
    data, start, states = run("centralised-groups")
    groups = [index % 3 for index in range(len(data))]
    models = [start[0]] * 3
    for ours, labels in states:
        for k in range(3):
            inside = [d for d, group in zip(data, groups, strict=True) if group == k]
            pool = tuple(np.concatenate(parts) for parts in zip(*inside, strict=True))
            monkeypatch.setattr(paper, "STEPS", steps * len(inside))
            models[k] = paper.trained(models[k], pool)
        assert labels == groups
        assert_equal(ours, models)


SUFFIXES = ["", "-con-para", "-con-rep", "-cks", "-con-cks", "-con-para-cks"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ifca(run, suffix):
    data, models, states = run(f"ifca{suffix}")
    counts, before = np.array(SIZES), None
    for round, (ours, labels) in enumerate(states):
        chosen = [int(np.argmin([paper.loss(m, d) for m in models])) for d in data]
        shares = paper.shares_of(before, counts, 3)
        local = [
            paper.trained(models[k], d, paper.terms_of(suffix if round else "", models, shares, k))
            for k, d in zip(chosen, data, strict=True)
        ]
        models = paper.cluster_means(models, np.array(local), counts, chosen)
        assert labels == chosen
        assert_equal(ours, models)
        before = chosen


def test_an_ensemble_trains_each_method_alone(run):
    """FedAvg on the first network, IFCA on the others, of which each client has one."""
    data, (single, *models), states = run("fedavg+ifca")
    counts = np.array(SIZES)
    for ours, labels in states:
        single = paper.weighted([paper.trained(single, d) for d in data], counts)
        chosen = [int(np.argmin([paper.loss(m, d) for m in models])) for d in data]
        local = np.array([paper.trained(models[k], d) for k, d in zip(chosen, data, strict=True)])
        models = paper.cluster_means(models, local, counts, chosen)
        assert labels == [1 + k for k in chosen]
        assert_equal(ours, [single, *models])


def assert_settled(points, weights, labels):
    """Every client is nearest to the centroid of its own cluster, where Lloyd's algorithm ends.

    It may end beside the best partition, whatever the number of its starts.
    """
    names = sorted(set(labels))
    inside = [np.equal(labels, k) for k in names]
    centres = np.array([np.average(points[i], axis=0, weights=weights[i]) for i in inside])
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    assert len(names) > 1
    assert [names[k] for k in distances.argmin(axis=1)] == labels


def weights_of(name, averaging):
    """Weights of the clients in K-means, and in its centres."""
    counts, equal = np.array(SIZES, dtype=float), np.ones(len(SIZES))
    if name == "wecfl":
        return counts, counts
    return equal, equal if averaging == "equal" else counts


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("name", "averaging"), [("fesem", "equal"), ("fesem", "samples"), ("wecfl", "samples")]
)
def test_kmeans_methods(run, name, averaging, suffix):
    """Names of clusters are free, so the labels are the run's once the partition is settled."""
    data, models, states = run(f"{name}{suffix}", 2, averaging=averaging)
    counts, served = np.array(SIZES), None
    weights, masses = weights_of(name, averaging)
    for round, (ours, labels) in enumerate(states):
        shares = paper.shares_of(served, counts, 2)
        local = np.array(
            [
                paper.trained(
                    models[k], d, paper.terms_of(suffix if round else "", models, shares, k)
                )
                for k, d in zip(served or [0] * len(data), data, strict=True)
            ]
        )
        assert_settled(local, weights, labels)
        models = paper.cluster_means(models, local, masses, labels)
        assert_equal(ours, models)
        served = labels


SIZE = paper.CLASSIFIER.stop


def own_update(update, g, own, data, regularizers=()):
    """One client's networks after a round of CAM: shared, own."""
    inputs = data[0]
    new = paper.trained(own, data, regularizers, paper.logits(g, inputs))
    against = own if update == "simultaneous" else new
    return paper.trained(g, data, (), paper.logits(against, inputs)), new


@pytest.mark.parametrize("update", ["simultaneous", "alternating"])
@pytest.mark.parametrize("aggregation", ["cluster_mean", "partial"])
def test_ifca_cam(run, update, aggregation):
    data, start, states = run("ifca-cam", update=update, aggregation=aggregation)
    counts, g, own = np.array(SIZES), start[0][:SIZE], [model[SIZE:] for model in start]
    for round, (ours, labels) in enumerate(states):
        if round == 0:  # a share of 0.3 of 4 rounds
            g = paper.weighted([paper.trained(g, d) for d in data], counts)
        else:
            chosen = [
                int(np.argmin([paper.loss(t, d, paper.logits(g, d[0])) for t in own])) for d in data
            ]
            both = [own_update(update, g, own[k], d) for k, d in zip(chosen, data, strict=True)]
            g = paper.weighted([shared for shared, _ in both], counts)
            means = paper.cluster_means(own, np.array([t for _, t in both]), counts, chosen)
            shares = paper.shares_of(chosen, counts, 3)
            if aggregation == "cluster_mean":
                shares = np.ones(3)
            own = [t + a * (m - t) for t, m, a in zip(own, means, shares, strict=True)]
            assert labels == chosen
        # in the warm-up all clients are served by the first cluster, whose own network is silent
        served = own if round else [np.zeros(SIZE), *own[1:]]
        assert_equal(ours, [np.concatenate([g, t]) for t in served])


@pytest.mark.parametrize("update", ["simultaneous", "alternating"])
@pytest.mark.parametrize("name", ["fesem", "wecfl"])
def test_kmeans_methods_with_cam(run, name, update):
    """K-means sees the clusters' networks, which are pulled to their centroids.

    Equations 10 and 11 weigh both by samples. In the warm-up, of 2 of 4 rounds, each client trains
    a network of its own without the shared one; its last round ends with K-means.
    """
    data, start, states = run(f"{name}-cam", 2, update=update, warm_up=2)
    counts, g = np.array(SIZES), start[0][:SIZE]
    weights, served = counts.astype(float), None
    alone, silent = [start[0][SIZE:]] * len(data), np.zeros(SIZE)
    for round, (ours, labels) in enumerate(states):
        if round < 2:
            alone = [paper.trained(t, d) for t, d in zip(alone, data, strict=True)]
            if round == 0:
                assert labels == list(range(len(data)))
                own = alone
            else:
                assert_settled(np.array(alone), weights, labels)
                own, served = (
                    paper.cluster_means([None] * 2, np.array(alone), counts, labels),
                    labels,
                )
            assert_equal(ours, [np.concatenate([silent, t]) for t in own])
            continue
        both = [
            own_update(update, g, own[k], d, [paper.proximal(own[k], paper.PULL)])
            for k, d in zip(served, data, strict=True)
        ]
        local = np.array([t for _, t in both])
        assert_settled(local, weights, labels)
        g = paper.weighted([shared for shared, _ in both], counts)
        own = paper.cluster_means(own, local, counts, labels)
        served = labels
        assert_equal(ours, [np.concatenate([g, t]) for t in own])
