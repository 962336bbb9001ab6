"""FAACL against a restatement with sets of devices, and against numbers by hand.

The restatement names a cluster by its devices and knows no indices: tests, merges and supporters
are written down from the paper's algorithms 2, 3 and 4, with the two corrections (a cluster merges
once; supporters are living clusters).
"""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import (
    Aggregation,
    Association,
    ClientData,
    Federation,
    Hypothesis,
    Model,
    Objective,
    drive,
)
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import RoundContext
from bcfl.policies.faacl.faacl import FAACL
from bcfl.policies.faacl.support import SupportTesting
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.support import SupportTest
from tests.recipes import built

DEVICES = tuple("abcdefgh")
MODEL = Model(
    name="tiny",
    build=lambda: nn.Linear(1, 1, bias=False),
    input_shape=(1,),
    num_outputs=1,
    likelihood="gaussian",
)


class Restated:
    """Clusters are frozensets of devices; `supporters` maps each to a set of others."""

    def __init__(self, devices):
        self.clusters = [frozenset(d) for d in devices]
        self.partitions = list(self.clusters)  # each a set of devices
        self.supporters = {c: set() for c in self.clusters}

    def pair_partitions(self):
        count = len(self.partitions)
        halves = [self.partitions[i] | self.partitions[count - 1 - i] for i in range(count)]
        self.partitions = halves[: (count + 1) // 2]

    def test(self, p_value, alpha, withdraws=False):
        before = {} if withdraws else self.supporters
        self.supporters = {
            own: {
                other
                for other in self.clusters
                if other != own
                and any(own <= p and other <= p for p in self.partitions)
                and all(p_value(device, own, other) <= alpha for device in own)
            }
            | before.get(own, set())
            for own in self.clusters
        }

    def merge(self, forget):
        child, done = {}, set()
        for one in sorted(self.clusters, key=min):
            for other in sorted(self.clusters, key=min):
                mutual = other in self.supporters[one] and one in self.supporters[other]
                if one not in done and other not in done and mutual:
                    child[one] = child[other] = one | other
                    done |= {one, other}
        parents = {new: [old for old in child if child[old] == new] for new in child.values()}
        supporters = {}
        for own in {child.get(c, c) for c in self.clusters}:
            if own not in parents:
                kept = self.supporters[own]
            elif forget:
                kept = set()
            else:
                kept = set.intersection(*(self.supporters[old] for old in parents[own]))
            if forget:
                kept = {c for c in kept if c not in child}
            supporters[own] = {child.get(c, c) for c in kept}
        self.clusters = sorted(supporters, key=min)
        self.supporters = supporters

    def trained_by(self, cluster):
        return set(cluster).union(*self.supporters[cluster])


def p_values_of(seed):
    """Devices of the same half of the alphabet mostly support each other; some doubt."""

    def p_value(round, device, own, other):
        alike = np.mean([(ord(device) - ord(o)) % 2 == 0 for o in other]) > 0.6
        words = [seed, round, ord(device), *map(ord, sorted(own)), 0, *map(ord, sorted(other))]
        return float(np.random.default_rng(words).uniform() * (0.115 if alike else 1.0))

    return p_value


class Driver:
    """Runs the policy with made-up answers; every round gives every cluster a new model."""

    def __init__(self, policy, p_value, rounds):
        self.policy, self.p_value, self.rounds = policy, p_value, rounds
        start = from_initial(MODEL, "start", torch.zeros(1), torch.zeros(0), 1.0)
        self.hypothesis = Hypothesis(clusters=(start,), association=Association.unseen(DEVICES, 1))

    def sets(self, hypothesis):
        rows = [[] for _ in hypothesis.clusters]
        for device, label in zip(DEVICES, hypothesis.association.labels, strict=True):
            if label >= 0:
                rows[label].append(device)
        return [frozenset(row) for row in rows]

    def step(self, round):
        counts = dict.fromkeys(DEVICES, 20)
        context = RoundContext(
            round=round,
            participants=DEVICES,
            num_samples=counts,
            seed=0,
            model=MODEL,
            candidates_per_parent=1,
            num_validation=counts,
            num_rounds=self.rounds,
        )
        before, members = self.hypothesis, self.sets(self.hypothesis)
        at = {p.key: m for p, m in zip(before.clusters, members, strict=True)}
        (candidate,), exchanges = drive(
            self.policy.associate(before, context),
            lambda request: self.answer(round, request, at),
            return_exchanges=True,
        )
        tests = [request for exchange in exchanges for request in exchange.requests]
        made = tuple(
            from_initial(MODEL, f"{round} {i}", torch.full((1,), 1.0 + i), torch.zeros(0), 1.0)
            for i in range(candidate.association.num_clusters)
        )
        self.hypothesis = Hypothesis(
            clusters=made,
            association=candidate.association,
            state=candidate.state,
            carried_models=candidate.carried_models,
        )
        return candidate, at, tests

    def answer(self, round, request, at):
        assert isinstance(request, Score)
        own, other = (at[key] for key in request.models)
        assert request.client in own
        return SupportTest(self.p_value(round, request.client, own, other), 9, 9)


def compare(driver, restated, candidate, at):
    after = driver.sets(driver.hypothesis)
    assert after == restated.clusters
    for index, cluster in enumerate(after):
        feeding = candidate.contribution_weights[:, index]
        trainings = [t for t, feed in zip(candidate.trainings, feeding, strict=True) if feed > 0]
        assert {t.client for t in trainings} == restated.trained_by(cluster)
        starts = {t.start for t in trainings}
        assert len(starts) == 1
        assert at[starts.pop()] <= cluster or not at[starts.pop()]
        assert set(feeding) <= {0.0, 1.0}


@pytest.mark.parametrize("withdraws", [False, True])
@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_flat(seed, forget, withdraws):
    policy = FAACL(
        objective=Objective(),
        testing=SupportTesting(withdraws=withdraws),
        cold_start=2,
        clustering=8,
        supporters_after_merge="empty" if forget else "intersection",
    )
    p_value = p_values_of(seed)
    driver, restated = Driver(policy, p_value, 20), Restated(DEVICES)
    restated.partitions = [frozenset(DEVICES)]
    converged = False
    for round in range(12):
        candidate, at, asked = driver.step(round)
        if 2 <= round < 10 and not converged:
            before = restated.clusters, restated.supporters
            count = len(restated.clusters)
            assert len(asked) == len(DEVICES) * (count - 1)
            restated.test(lambda d, own, other, r=round: p_value(r, d, own, other), 0.1, withdraws)
            restated.merge(forget)
            converged = before == (restated.clusters, restated.supporters)
        else:
            assert not asked
        compare(driver, restated, candidate, at if round else {"start": frozenset(), **at})


@pytest.mark.parametrize("seed", range(4))
def test_hierarchical(seed):
    """Eight devices have four levels, each with two passes here."""
    policy = FAACL(objective=Objective(), hierarchical=True, cold_start=1, clustering=40, repeats=2)
    p_value = p_values_of(seed)
    driver, restated = Driver(policy, p_value, 50), Restated(DEVICES)
    for round in range(12):
        candidate, at, _ = driver.step(round)
        if 1 <= round < 9:
            if round in (3, 5, 7):
                restated.pair_partitions()
            restated.test(lambda d, own, other, r=round: p_value(r, d, own, other), 0.1)
            restated.merge(False)
        compare(driver, restated, candidate, at)
    assert len(restated.partitions) == 1


def test_supporters_train_by_their_samples():
    """Members with 40 and 60 samples, a supporter with 100: (1.1, 2.6); without it (2.2, 0.2)."""
    model = Model(
        name="two",
        build=lambda: nn.Linear(2, 1, bias=False),
        input_shape=(2,),
        num_outputs=1,
        likelihood="gaussian",
    )
    start = [
        from_initial(model, f"m{i}", torch.full((2,), float(i)), torch.zeros(0), 1.0)
        for i in range(2)
    ]
    association = Association(("a", "b", "c"), np.array([0, 0, 1]), 2)
    found = {}
    for name, supports in (("with", [[0, 1, 0.01]]), ("without", [])):
        state = {"partitions": [0, 0], "supports": supports, "converged": True}
        hypothesis = Hypothesis(clusters=tuple(start), association=association, state=state)
        policy = FAACL(objective=Objective())
        counts = {"a": 40, "b": 60, "c": 100}
        context = RoundContext(
            round=90, participants=("a", "b", "c"), num_samples=counts, seed=0, model=model
        )
        (candidate,) = drive(policy.associate(hypothesis, context))
        means = {"a": (1.0, 2.0), "b": (3.0, -1.0), "c": (0.0, 5.0)}
        replies = {
            t: Trained(
                mean=torch.tensor(means[t.client]),
                buffers=torch.zeros(0),
                curvature=torch.tensor(float(counts[t.client])),
                num_samples=counts[t.client],
            )
            for t in candidate.trainings
        }
        clusters, _ = Aggregation().combine(model, hypothesis, candidate, replies, {}, 90)
        found[name] = [posterior.mean(model).tolist() for posterior in clusters]
        assert candidate.association.labels.tolist() == [0, 0, 1]
    assert found["with"][0] == pytest.approx([1.1, 2.6])
    assert found["without"][0] == pytest.approx([2.2, 0.2])
    assert found["with"][1] == found["without"][1] == pytest.approx([0.0, 5.0])


def samples(random, count, shift):
    x = random.normal(size=(count, 4)).astype(np.float32)
    return x, (x[:, :3].argmax(axis=1) + shift) % 3


def federation(name, shifts, count=60):
    random = np.random.default_rng(0)
    clients = [
        ClientData.from_arrays(
            f"c{i}", samples(random, count, shift), samples(random, 30, shift), shift
        )
        for i, shift in enumerate(shifts)
    ]
    network = Model(
        name="mlp",
        build=lambda: nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)),
        input_shape=(4,),
        num_outputs=3,
    )
    training = Objective(local_steps=15, batch_size=10)
    return Federation(clients, network, built(name, objective=training))


@pytest.mark.parametrize("name", ["faacl", "faacl-h"])
def test_alike_devices_end_in_one_cluster_and_shifted_labels_in_two(name):
    alike = federation(name, [0] * 4).run(8)
    assert alike.hypotheses.best.association.labels.tolist() == [0] * 4
    shifted = federation(name, [0, 1, 0, 1]).run(8)
    assert shifted.hypotheses.best.association.labels.tolist() == [0, 1, 0, 1]
    assert shifted.records[-1].info.facts["supports"] == 0


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_whole_hierarchy_fits_in_any_number_of_rounds(rounds):
    run = federation("faacl-h", [0, 1, 0, 1]).run(rounds)
    partitions = run.hypotheses.best.state["partitions"]
    assert set(partitions) == ({0} if rounds > 1 else {0, 1, 2, 3})


def test_few_validation_samples_are_reported():
    """Nine training samples leave two for validation: no p-value can reach the level."""
    run = federation("faacl", [0, 0, 0], count=9).run(3)
    assert run.records[1].info.facts["devices_with_too_few_pairs"] == 3
    assert run.hypotheses.best.association.num_clusters == 3


def test_newcomers_open_clusters_that_can_still_merge():
    fed = federation("faacl", [0] * 6)
    run = Federation(fed.clients, fed.model, fed.method, client_fraction=0.5).run(16)
    association = run.hypotheses.best.association
    assert (association.labels >= 0).all()
    assert association.num_clusters < 6
