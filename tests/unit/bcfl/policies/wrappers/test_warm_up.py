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
    with pytest.raises(ValueError, match="starts must be at least 0 or None, got -1"):
        WarmUp(one, one, starts=-1)


@pytest.mark.parametrize(
    ("starts", "lineage", "first"),
    [(1, (0, 0), Train), (1, (1, 0), Score), (2, (1, 1), Train), (0, (0,), Score), (1, (), Train)],
)
def test_some_starts_may_begin_with_the_second_policy(
    linear, newborn, context, starts, lineage, first
):
    policy = WarmUp(
        KMeansAssociation(num_clusters=2, objective=Objective()),
        LikelihoodAssociation(num_clusters=2, objective=Objective()),
        starts=starts,
    )
    parent = Hypothesis(
        clusters=(newborn(linear), newborn(linear, 1)),
        association=Association.unseen(("a", "b"), 2),
        lineage=lineage,
    )
    assert isinstance(next(policy.associate(parent, context(("a", "b"), 1))).requests[0], first)
