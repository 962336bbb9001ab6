"""Partial steps: the policy ranks as ever, its candidates are marked."""

import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import ClusterSize, FedAvg, KMeansAssociation
from bcfl.policies.wrappers.partial import Partial


def test_candidates_are_marked_and_nothing_else_changes(linear, newborn, context):
    parent = Hypothesis(clusters=(newborn(linear),), association=Association.unseen(("a", "b"), 1))
    policy = FedAvg(Objective())
    (plain,) = drive(policy.associate(parent, context(["a", "b"])))
    (marked,) = drive(Partial(policy).associate(parent, context(["a", "b"])))
    assert (plain.partial, marked.partial) == (False, True)
    assert marked.trainings == plain.trainings
    assert marked.association.labels.tolist() == plain.association.labels.tolist()


def test_it_is_as_its_policy():
    policy = KMeansAssociation(
        num_clusters=3, objective=Objective(local_steps=2), cluster_size=ClusterSize(2)
    )
    assert (Partial(policy).num_clusters, Partial(policy).objective) == (3, policy.objective)
    with pytest.raises(ValueError, match="does not fit 5 clients in 3 clusters"):
        Partial(policy).check(3, 5, 5)
    Partial(FedAvg(Objective())).check(1, 5, 5)
