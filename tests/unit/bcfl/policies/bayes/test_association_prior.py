import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import LikelihoodAssociation
from bcfl.policies.bayes.association_prior import UNIFORM, AssociationPrior
from bcfl.protocol.statistics.loss import LossSum

NAMES = ("a", "b", "c")


def association(*labels, clusters=3, soft=None):
    return Association(NAMES, np.array(labels), clusters, soft)


def test_staying_by_hand():
    found = np.exp(AssociationPrior(0.9).log_probabilities(association(0, 2, -1), NAMES))
    third = 1 / 3
    expected = [[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [third, third, third]]
    np.testing.assert_allclose(found, expected)


def test_uniform_is_the_same_for_all():
    found = UNIFORM.log_probabilities(association(0, 1, -1), NAMES)
    np.testing.assert_allclose(found, -np.log(3))


@pytest.mark.parametrize("staying", [1e-12, 0.2, 0.5, 0.99, 1 - 1e-12])
@pytest.mark.parametrize("clusters", [1, 2, 5])
def test_probabilities_sum_to_one(staying, clusters):
    random = np.random.default_rng(clusters)
    soft = random.dirichlet(np.ones(clusters), size=3)
    soft[2] = 0.0
    for before in (
        association(0, clusters - 1, -1, clusters=clusters),
        association(*soft.argmax(axis=1)[:2], -1, clusters=clusters, soft=soft),
    ):
        logs = AssociationPrior(staying).log_probabilities(before, NAMES)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)


def test_a_soft_association_stays_in_proportion():
    soft = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    before = association(1, 0, 0, clusters=2, soft=soft)
    found = np.exp(AssociationPrior(0.8).log_probabilities(before, NAMES))
    np.testing.assert_allclose(found[:, 0], [0.25 * 0.8 + 0.75 * 0.2, 0.8, 0.5])


def test_limits():
    """Staying with probability 1/K is uniform; near 1 no client leaves, near 0 all do."""
    before = association(0, 1, 2)
    even = AssociationPrior(1 / 3).log_probabilities(before, NAMES)
    np.testing.assert_allclose(even, -np.log(3))
    fixed = np.exp(AssociationPrior(1 - 1e-14).log_probabilities(before, NAMES))
    np.testing.assert_allclose(fixed, np.eye(3), atol=1e-13)
    gone = np.exp(AssociationPrior(1e-14).log_probabilities(before, NAMES))
    np.testing.assert_allclose(gone, (1 - np.eye(3)) / 2, atol=1e-13)


def test_rows_are_the_clients_asked_for():
    prior, before = AssociationPrior(0.7), association(0, 1, 2)
    every = prior.log_probabilities(before, NAMES)
    np.testing.assert_array_equal(prior.log_probabilities(before, ("c", "a")), every[[2, 0]])
    assert prior.log_probabilities(before, ()).shape == (0, 3)


@pytest.mark.parametrize("staying", [0.0, 1.0, -0.1, 1.1, float("nan")])
def test_other_numbers_are_no_probability_of_staying(staying):
    with pytest.raises(ValueError, match="staying must lie between 0 and 1 or be None, got"):
        AssociationPrior(staying)


@pytest.mark.parametrize("staying", [None, 0.6, 0.95])
def test_a_ranking_weighs_likelihood_and_prior(linear, newborn, context, staying):
    """All eight associations of three clients with losses and places by hand."""
    losses = {"a": (1.0, 2.5), "b": (4.0, 3.0), "c": (0.5, 0.7)}
    labels = {"a": 1, "b": 1, "c": -1}
    clusters = (newborn(linear, 0), newborn(linear, 1))
    parent = Hypothesis(
        clusters=clusters, association=Association(NAMES, np.array(list(labels.values())), 2)
    )
    policy = LikelihoodAssociation(
        num_clusters=2, objective=Objective(), temperature=1.0, prior=AssociationPrior(staying)
    )
    ranking, exchanges = drive(
        policy.associate(parent, context(NAMES, candidates_per_parent=None)),
        lambda r: {p.key: LossSum(losses[r.client][i], 0.0, 2) for i, p in enumerate(clusters)},
        return_exchanges=True,
    )
    assert len(exchanges) == 1
    reference = float(ranking.reference)
    found = {tuple(c.association.labels): c.log_weight + reference for c in ranking}
    expected = {}
    for chosen in np.ndindex(2, 2, 2):
        weight = 1.0
        for name, label in zip(NAMES, chosen, strict=True):
            free = staying is None or labels[name] < 0
            stays = staying if labels[name] == label else 1 - (staying or 0)
            weight *= np.exp(-losses[name][label]) * (0.5 if free else stays)
        expected[chosen] = np.log(weight)
    assert found == {k: pytest.approx(v) for k, v in expected.items()}
    total = np.log(np.exp(list(expected.values())).sum())
    assert ranking.log_total + reference == pytest.approx(total)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_sizes_by_hand():
    """Clients a, b, c in cluster 0, d in 1, none in 2, e never seen; concentration 0.5.

    For a there are 2, 1, 0 others, for d 3, 0, 0 and for e 3, 1, 0.
    """
    association = Association(tuple("abcde"), np.array([0, 0, 0, 1, -1]), 3)
    found = np.exp(AssociationPrior(concentration=0.5).log_probabilities(association, "ade"))
    expected = [
        [2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5],
        [3.5 / 4.5, 0.5 / 4.5, 0.5 / 4.5],
        [3.5 / 5.5, 1.5 / 5.5, 0.5 / 5.5],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_before_anybody_is_seen_all_sizes_are_equal():
    association = Association.unseen(tuple("abc"), 4)
    found = AssociationPrior(concentration=2.0).log_probabilities(association, "ab")
    np.testing.assert_allclose(found, -np.log(4), rtol=1e-12)


def test_many_imagined_clients_make_the_prior_uniform():
    association = Association(tuple("abc"), np.array([0, 0, 1]), 2)
    found = AssociationPrior(concentration=1e9).log_probabilities(association, "abc")
    np.testing.assert_allclose(found, -np.log(2), atol=1e-8)


@pytest.mark.parametrize("concentration", [0.0, -1.0, float("nan")])
def test_a_concentration_is_positive(concentration):
    with pytest.raises(ValueError, match="concentration must be greater than 0 or None"):
        AssociationPrior(concentration=concentration)


def test_one_of_both_priors_is_enough():
    with pytest.raises(ValueError, match="staying and concentration"):
        AssociationPrior(0.9, 1.0)
