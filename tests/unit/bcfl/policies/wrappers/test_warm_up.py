import pytest

from bcfl import Association, Federation, Hypothesis, Objective
from bcfl.methods import build
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


def test_clusters_of_kmeans_may_be_held(clients, linear):
    """In held rounds clients train from the model that serves them, and score none."""
    method = build(
        "bcfl-race-2", num_clusters=2, warm_starts=2, held_rounds=2, objective=Objective()
    )
    records = Federation(clients, linear, method, device="cpu").run(4).records
    labels = [record.snapshot.associations[0].labels.tolist() for record in records]
    assert labels[0] == labels[1] == labels[2]
    assert [record.ledger.scores_requested > 0 for record in records] == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("rounds", "held", "words"),
    [(1, -1, "held must be at least 0"), (0.5, 2, "rounds must be whole")],
)
def test_what_cannot_be_held_is_refused(rounds, held, words):
    policy = LikelihoodAssociation(num_clusters=2, objective=Objective())
    with pytest.raises(ValueError, match=words):
        WarmUp.by_kmeans(policy, rounds, held=held)
