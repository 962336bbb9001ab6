"""Policies without requests: local training, centralised training, ensembles."""

import numpy as np
import pytest
import torch

from bcfl import Association, ClientData, Federation, Hypothesis, Objective, drive, methods
from bcfl.data.clients import POOL
from bcfl.policies import Continue
from bcfl.policies.baselines.centralised import Centralised
from bcfl.policies.baselines.ensemble import Ensemble
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.protocol.regularizers import Sharing
from bcfl.protocol.requests import Train

CLIENTS = ("a", "b", "c")


@pytest.fixture
def found(context):
    """The one candidate of a policy that yields nothing."""

    def of(policy, parent, participants):
        (chosen,) = drive(policy.associate(parent, context(participants)))
        return chosen

    return of


@pytest.fixture
def parent(linear, newborn):
    """A hypothesis of clusters without clients."""

    def of(num_clusters):
        clusters = tuple(newborn(linear, seed) for seed in range(num_clusters))
        unseen = Association.unseen(CLIENTS, num_clusters)
        return Hypothesis(
            clusters=clusters,
            association=unseen,
            state={"kept": 1},
            carried_models={"old": clusters[0]},
        )

    return of


def test_alone_opens_a_cluster_for_each_client_in_the_first_round(found, parent):
    start = parent(1)
    (one,) = start.clusters
    chosen = found(LocalTraining(Objective()), start, ("a", "c"))
    assert chosen.association.labels.tolist() == [0, -1, 2]
    assert chosen.association.num_clusters == 3
    assert [origin.posterior(start) for origin in chosen.origins] == [one] * 3
    assert [(t.client, t.start) for t in chosen.trainings] == [("a", one.key), ("c", one.key)]
    assert chosen.contribution_weights.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_alone_goes_on_from_each_clients_own(found, parent):
    later = parent(3)
    chosen = found(LocalTraining(Objective()), later, ("b", "c"))
    keys = [posterior.key for posterior in later.clusters]
    assert [(t.client, t.start) for t in chosen.trainings] == [("b", keys[1]), ("c", keys[2])]
    assert chosen.origins == (Continue(0), Continue(1), Continue(2))


def test_centralised_trains_where_all_samples_are(found, parent):
    """As many steps as the participants would take together; they are served, but not asked."""
    start = parent(1)
    chosen = found(Centralised(Objective(local_steps=4)), start, ("a", "c"))
    expected = Train(POOL, start.clusters[0].key, Objective(local_steps=8))
    assert chosen.trainings == (expected,)
    assert chosen.contribution_weights.tolist() == [[1.0]]
    assert chosen.association.labels.tolist() == [0, -1, 0]
    assert found(Centralised(Objective()), start, ()).trainings[0].objective.local_steps == 1


def test_centralised_training_of_groups_needs_some_groups():
    samples = np.zeros((4, 2), dtype=np.float32), [0, 1, 0, 1]
    clients = [ClientData.from_arrays(f"c{i}", samples) for i in range(3)]
    method = methods.build("centralised-groups")
    message = r"'centralised-groups' pools .* no client has one; .* use 'centralised'"
    with pytest.raises(ValueError, match=message):
        Federation(clients, lambda: torch.nn.Linear(2, 2), method)
    clients[1] = ClientData.from_arrays("c1", samples, group=3)
    told = Federation(clients, lambda: torch.nn.Linear(2, 2), method).method
    assert told.policy.num_clusters == 2


def test_centralised_training_of_groups_pools_each_alone(found, parent):
    plain = Centralised(Objective(local_steps=4), by_group=True)
    policy = plain.of_groups([7, None, 7])
    assert (policy.num_clusters, policy.groups) == (2, (0, 1, 0))
    assert policy.pools("abc") == {f"{POOL} of group 0": ["a", "c"], f"{POOL} of group 1": ["b"]}
    start = parent(2)
    chosen = found(policy, start, ("a", "b"))
    assert [(t.client, t.start) for t in chosen.trainings] == [
        (f"{POOL} of group {k}", start.clusters[k].key) for k in range(2)
    ]
    assert [t.objective.local_steps for t in chosen.trainings] == [4, 4]
    assert chosen.contribution_weights.tolist() == np.eye(2).tolist()
    assert chosen.association.labels.tolist() == [0, 1, -1]
    one = Centralised(Objective())
    assert one.of_groups([1, 2, 3]) == one
    assert one.pools("ab") == {POOL: ["a", "b"]}


def test_an_ensemble_trains_and_serves_with_every_model(found, parent):
    start = parent(3)
    chosen = found(Ensemble(3, Objective()), start, ("a", "c"))
    keys = [posterior.key for posterior in start.clusters]
    assert [(t.client, t.start) for t in chosen.trainings] == [
        (client, key) for key in keys for client in ("a", "c")
    ]
    assert chosen.contribution_weights.tolist() == np.repeat(np.eye(3), 2, axis=0).tolist()
    third = pytest.approx([1 / 3] * 3)
    assert chosen.association.serving.tolist() == [third, [0, 0, 0], third]
    assert (chosen.state, chosen.carried_models) == (start.state, start.carried_models)


def test_an_ensemble_keeps_serving_whoever_it_has_seen(found, parent):
    start = parent(2)
    first = found(Ensemble(2, Objective()), start, ("a",))
    later = Hypothesis(clusters=start.clusters, association=first.association)
    second = found(Ensemble(2, Objective()), later, ("b",))
    assert second.association.serving.tolist() == [[0.5, 0.5], [0.5, 0.5], [0, 0]]
    assert [t.client for t in second.trainings] == ["b", "b"]


def test_models_that_terms_name_travel_along(found, parent):
    chosen = found(Ensemble(2, Objective(regularizers=(Sharing(),))), parent(2), ("a", "b"))
    (mean,) = {posterior.key: posterior for posterior in chosen.models}.values()
    assert {t.references for t in chosen.trainings} == {((mean.key,),)}
    parts = [p.blocks[0].gaussian.mean for p in parent(2).clusters]
    torch.testing.assert_close(mean.blocks[0].gaussian.mean, sum(parts) / 2)


def test_numbers_of_clusters():
    assert LocalTraining(Objective()).num_clusters == Centralised(Objective()).num_clusters == 1
    assert Ensemble(4, Objective()).num_clusters == 4
    with pytest.raises(
        ValueError, match="num_clusters must be a whole number of at least 1, got 0"
    ):
        Ensemble(0, Objective())
