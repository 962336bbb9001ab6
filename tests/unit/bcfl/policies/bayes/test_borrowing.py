from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Association, Objective, drive
from bcfl.policies import LikelihoodAssociation, Ranking, candidate
from bcfl.policies.bayes.borrowing import (
    AsymmetricBCFL,
    Borrowing,
    borrowing_gains,
    expected_power,
    with_borrowed,
)
from bcfl.policies.policy import Given
from bcfl.protocol.answers import Trained
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum

NAMES = ("a", "b", "c")
LAPLACE = Objective(curvature="ggn")


def expansions(parent, signs):
    """Clients whose gradients point along or against each other at both clusters."""
    return {
        client: {
            p.key: EvidenceSum(-1.0, torch.full((8,), 10.0 * sign), torch.full((8,), 4.0), 5)
            for p in parent.clusters
        }
        for client, sign in zip(NAMES, signs, strict=True)
    }


def test_a_cluster_borrows_from_clients_that_pull_the_same_way(parent, linear):
    chosen = candidate(parent, {"a": 0, "b": 1, "c": 1}, LAPLACE)
    borrowing = Borrowing(parent, linear, expansions(parent, (1, 1, -1)), 1.0)
    weights = borrowing.weights(chosen, 0.1)
    assert set(weights) == {("b", 0)}  # b and c cancel out: a has nothing to give to them
    own = np.full(8, 10.0), np.full(8, 4.0)
    powers = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
    gains = borrowing_gains(own, own, np.ones(8), powers)
    assert weights["b", 0] == pytest.approx(expected_power(gains, powers))


def test_what_members_lose_at_the_other_clusters_model_counts_against_borrowing(parent, linear):
    own, other = (posterior.key for posterior in parent.clusters)
    powers = np.array((0.0, 0.01, 0.03, 0.1, 0.3, 1.0))
    pull = np.full(8, 10.0), np.full(8, 4.0)
    gains = borrowing_gains(pull, pull, np.ones(8), powers)
    found = []
    for lost in (-7.0, 0.0, 7.0, 1e4):  # nats that a loses at the model of b's cluster
        expanded = expansions(parent, (1, 1, -1))
        expanded["a"] = {
            key: replace(expanded["a"][key], log_likelihood=-1.0 if key == own else -1.0 - lost)
            for key in (own, other)
        }
        chosen = candidate(parent, {"a": 0, "b": 1, "c": 1}, LAPLACE)
        borrowing = Borrowing(parent, linear, expanded, 1.0)
        found.append(borrowing.weights(chosen, 1e-9).get(("b", 0), 0.0))
        assert found[-1] == pytest.approx(expected_power(gains - powers * max(0, lost), powers))
    assert found[0] == found[1] > found[2] > 0.01
    assert found[3] == 0


def test_many_samples_pull_further_than_their_power(parent, linear):
    own, other = (posterior.key for posterior in parent.clusters)
    pull = np.full(8, 10.0), np.full(8, 4.0)
    powers = np.array((0.0, 0.01, 0.03, 0.1, 0.3, 1.0))
    gains = borrowing_gains(pull, pull, np.ones(8), powers)
    expanded = expansions(parent, (1, 1, -1))
    expanded["a"] = {
        key: replace(expanded["a"][key], log_likelihood=-1.0 if key == own else -8.0)
        for key in (own, other)
    }
    expanded["b"] = {key: replace(expanded["b"][key], num_samples=500) for key in (own, other)}
    borrowing = Borrowing(parent, linear, expanded, 1.0)
    found = borrowing.weights(candidate(parent, {"a": 0, "b": 1, "c": 1}, LAPLACE), 1e-9)
    share = np.maximum(powers, powers * 500 / (5 + powers * 500))
    assert found["b", 0] == pytest.approx(expected_power(gains - 7.0 * share, powers))


def test_clusters_are_followed_through_their_origins(parent, linear, newborn):
    expanded = expansions(parent, (1, 1, -1))
    expanded["a"][parent.clusters[1].key] = replace(
        expanded["a"][parent.clusters[1].key], log_likelihood=-9.0
    )
    borrowing = Borrowing(parent, linear, expanded, 1.0)
    plain = candidate(parent, {"a": 0, "b": 1, "c": 1}, LAPLACE)
    swapped = replace(
        plain,
        association=Association(NAMES, np.array([1, 0, 0]), 2),
        contribution_weights=plain.contribution_weights[:, ::-1],
        origins=plain.origins[::-1],
    )
    straight, turned = borrowing.weights(plain, 0.01), borrowing.weights(swapped, 0.01)
    assert straight
    assert turned == {(client, 1 - index): w for (client, index), w in straight.items()}
    fresh = replace(plain, origins=(plain.origins[0], Given(newborn(linear, 5))))
    assert {index for _, index in borrowing.weights(fresh, 1e-9)} <= {0}


def test_a_cluster_without_members_borrows_nothing(parent, linear):
    chosen = candidate(parent, {"a": 0, "b": 0, "c": 0}, LAPLACE)
    borrowing = Borrowing(parent, linear, expansions(parent, (1, 1, 1)), 1.0)
    assert borrowing.weights(chosen, 0.1) == {}


def test_what_is_borrowed_enters_as_a_power_of_the_local_posterior(parent, linear, context):
    chosen = candidate(parent, {"a": 0, "b": 1, "c": 1}, LAPLACE)
    wide = with_borrowed(parent, chosen, {("b", 0): 0.5}, LAPLACE, context(NAMES))
    assert wide.association is chosen.association
    assert len(wide.trainings) == 4
    assert wide.trainings[:3] == chosen.trainings
    assert wide.trainings[3].client == "b"
    assert wide.trainings[3].start == parent.clusters[0].key
    assert wide.contribution_weights.tolist() == [[1, 0], [0, 1], [0, 1], [0.5, 0]]
    assert wide.state["borrowed"] == [["b", 0, 0.5]]
    means = {"a": 2.0, "b": 5.0, "c": 0.0}
    replies = {
        t: Trained(
            mean=torch.full((8,), means[t.client]),
            buffers=torch.zeros(0),
            curvature=torch.full((8,), 4.0),
            num_samples=2,
        )
        for t in wide.trainings
    }
    clusters, _ = Aggregation().combine(linear, parent, wide, replies, {}, 0)
    np.testing.assert_allclose(clusters[0].mean(linear), (2.0 + 0.5 * 5.0) / 1.5, rtol=1e-5)
    np.testing.assert_allclose(clusters[1].mean(linear), 2.5, rtol=1e-5)


def test_ranking_and_weights_are_the_policys_own(parent, linear, context):
    class Fixed:
        num_clusters, objective = 2, LAPLACE

        def associate(self, hypothesis, context):
            yield from ()
            one = candidate(hypothesis, {"a": 0, "b": 1, "c": 1}, LAPLACE, log_weight=-2.0)
            other = replace(candidate(hypothesis, {"a": 0, "b": 0, "c": 1}, LAPLACE), log_weight=-3)
            return Ranking((one, other), 0.5, {"temperature": 2.0})

    policy = AsymmetricBCFL(Fixed(), smallest=0.3)
    expanded = expansions(parent, (1, 1, -1))
    steps = policy.associate(parent, context(NAMES))
    ranking, (exchange,) = drive(steps, lambda r: expanded[r.client], return_exchanges=True)
    assert {(r.client, r.statistic) for r in exchange.requests} == {(n, Evidence()) for n in NAMES}
    found = list(ranking)
    assert (ranking.log_total, ranking.facts) == (0.5, {"temperature": 2.0})
    assert [one.log_weight for one in found] == [-2.0, -3.0]
    assert [len(one.trainings) for one in found] == [4, 3]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"temperature": 0.0}, "temperature must be positive and finite, got 0.0"),
        ({"smallest": 0.0}, "smallest must lie above 0 and at most at 1, got 0.0"),
        ({"samples": 0}, "samples must be a whole number of at least 1 or None, got 0"),
    ],
)
def test_impossible_numbers_are_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        AsymmetricBCFL(LikelihoodAssociation(num_clusters=2, objective=LAPLACE), **changes)
