"""Clusters without clients stay as they are, for concepts that come back.

FedDrift (Jothimurugesan et al. 2023) keeps them; so does "Asymmetric clustering in federated
continual learning", where they are not trained, and supporters (algorithm 2) are only ever added.
"""

from types import SimpleNamespace

import pytest
import torch

from bcfl import Federation
from bcfl.data.streams import Schedule
from bcfl.policies.faacl.faacl import contributors
from bcfl.policies.faacl.mutual_merge import Clustering
from bcfl.policies.faacl.support import Support, SupportTesting
from experiments.scores.retention import Retention


@pytest.fixture
def changing(divide, perceptron, build_method):
    """Concepts A A B B: the clients, how to run them, and the first round under B."""
    clients = divide("stream", concept="shifted-labels", steps=4, clients=6, samples_per_client=80)
    rounds = 8

    def run(note=None, **options):
        recipe = build_method("feddrift", local_steps=20, delta=0.5, **options)
        return Federation(clients, perceptron, recipe, seed=0).run(rounds, on_round=note)

    schedule = Schedule.of(clients, rounds)
    return clients, run, next(r for r in range(rounds) if schedule.step(r) == 2)


def test_model_of_a_concept_outlives_its_clients(changing, perceptron):
    """To the last bit where clients train on samples of the time step alone."""
    _, run, switch = changing
    models = {}

    def note(state, record):
        best = state.hypotheses.best
        used = {int(label) for label in best.association.labels}
        models[state.round] = [best.clusters[label].mean(perceptron) for label in used]

    last = run(note, trains_on="current").hypotheses.best.clusters
    for old in models[switch]:
        assert any(torch.equal(old, kept.mean(perceptron)) for kept in last)


def test_a_cluster_goes_on_training_on_what_was_brought_to_it(changing, perceptron):
    clients, run, _ = changing
    kept = {
        name: Retention.of(perceptron, r.hypotheses.best, clients).kept
        for name, r in (("all", run()), ("current", run(trains_on="current")))
    }
    assert kept["all"] > kept["current"] > 0.5


def test_supporters_do_not_train_a_cluster_without_devices():
    support = Support({(0, 1): 0.05})
    clustering = Clustering(((), ("a", "b")), (0, 1), (1, 0), support)
    assert contributors(clustering, 0, ["a", "b"]) == []
    assert contributors(clustering, 1, ["a", "b"]) == ["a", "b"]


def test_support_of_a_dormant_cluster_is_kept():
    before = Support({(2, 0): 0.05, (0, 1): 0.02})
    context = SimpleNamespace(participants=(), validating=lambda clients: [])
    tests = SupportTesting().find([None] * 3, (("a",), ("b",), ()), (0, 0, 1), before, context)
    with pytest.raises(StopIteration) as end:
        next(tests)
    assert end.value.value.support.p_values == before.p_values
