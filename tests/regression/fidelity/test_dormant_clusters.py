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


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="a cluster that all clients have left is deleted"
)
def test_model_of_a_concept_outlives_its_clients(divide, perceptron, build_method):
    clients = divide("stream", concept="shifted-labels", steps=4, clients=6, samples_per_client=80)
    rounds, models = 8, {}

    def note(state, record):
        best = state.hypotheses.best
        used = {int(label) for label in best.association.labels}
        models[state.round] = [best.clusters[label].mean(perceptron) for label in used]

    recipe = build_method("feddrift", local_steps=20, delta=0.5)
    run = Federation(clients, perceptron, recipe, seed=0).run(rounds, on_round=note)
    schedule = Schedule.of(clients, rounds)
    switch = next(r for r in range(rounds) if schedule.step(r) == 2)  # concepts A A B B
    last = [cluster.mean(perceptron) for cluster in run.hypotheses.best.clusters]
    for old in models[switch]:
        assert any(torch.equal(old, kept) for kept in last)


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
