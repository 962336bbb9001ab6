import pytest

from bcfl import Association, Hypothesis, Objective
from bcfl.policies import (
    FedAvg,
    KMeansAssociation,
    LikelihoodAssociation,
    WarmUp,
)
from bcfl.protocol.requests import Score, Train


def test_the_first_rounds_follow_the_first_policy(linear, newborn, context):
    policy = WarmUp(
        KMeansAssociation(num_clusters=2, objective=Objective()),
        LikelihoodAssociation(num_clusters=2, objective=Objective()),
        rounds=3,
    )
    parent = Hypothesis(
        clusters=(newborn(linear), newborn(linear, 1)),
        association=Association.unseen(("a", "b"), 2),
    )
    asked = [
        type(next(policy.associate(parent, context(("a", "b"), r))).requests[0]) for r in range(5)
    ]
    assert asked == [Train, Train, Train, Score, Score]
    assert policy.num_clusters == 2


def test_both_policies_have_as_many_clusters():
    with pytest.raises(ValueError, match="same number of clusters, got 3 and 1"):
        WarmUp(KMeansAssociation(num_clusters=3, objective=Objective()), FedAvg(Objective()))


def test_a_negative_number_of_rounds_is_refused():
    one = FedAvg(Objective())
    with pytest.raises(ValueError, match="rounds must be at least 0, got -1"):
        WarmUp(one, one, -1)
