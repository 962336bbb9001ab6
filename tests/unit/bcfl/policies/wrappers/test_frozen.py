"""Few-shot clustering: after some rounds the clients stay where they are."""

import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import KMeansAssociation, LikelihoodAssociation
from bcfl.policies.wrappers.frozen import Frozen
from bcfl.protocol.requests import Score

POLICY = Frozen(LikelihoodAssociation(num_clusters=2, objective=Objective(), solver="argmin"), 3)


@pytest.fixture
def parent(linear, newborn):
    association = Association(("a", "b", "c"), np.array([1, 0, -1]), 2)
    return Hypothesis(clusters=(newborn(linear, 0), newborn(linear, 1)), association=association)


def test_the_first_rounds_are_the_policys(parent, context):
    for round in range(3):
        exchange = next(POLICY.associate(parent, context(("a", "b"), round)))
        assert {type(request) for request in exchange.requests} == {Score}


def test_then_clients_train_where_they_are_and_nothing_is_asked(parent, context):
    (chosen,) = drive(POLICY.associate(parent, context(("a", "b"), 3)))
    assert chosen.association.labels.tolist() == [1, 0, -1]
    keys = [posterior.key for posterior in parent.clusters]
    assert [(t.client, t.start) for t in chosen.trainings] == [("a", keys[1]), ("b", keys[0])]


def test_newcomers_are_still_associated(parent, context):
    exchange = next(POLICY.associate(parent, context(("a", "c"), 9)))
    assert {type(request) for request in exchange.requests} == {Score}


def test_it_is_as_its_policy():
    policy = KMeansAssociation(num_clusters=3, objective=Objective(local_steps=2))
    assert (Frozen(policy).num_clusters, Frozen(policy).objective) == (3, policy.objective)
    assert Frozen(policy).rounds == 10


@pytest.mark.parametrize("rounds", [0, -2])
def test_at_least_one_round_clusters(rounds):
    with pytest.raises(
        ValueError, match=f"rounds must be a whole number of at least 1, got {rounds}"
    ):
        Frozen(KMeansAssociation(num_clusters=2, objective=Objective()), rounds)
