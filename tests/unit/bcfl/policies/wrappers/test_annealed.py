"""Associations drawn at a falling temperature."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from bcfl import Association, Hypothesis, drive
from bcfl.policies import ClusterSize, LikelihoodAssociation
from bcfl.policies.wrappers.annealed import AnnealedAssociation
from bcfl.protocol.objective import Objective
from bcfl.protocol.statistics.loss import LossSum

NAMES = tuple(f"c{i}" for i in range(6))


@pytest.fixture
def hypothesis(linear, newborn):
    unseen = Association.unseen(NAMES, 2)
    return Hypothesis(clusters=(newborn(linear, 0), newborn(linear, 1)), association=unseen)


@pytest.fixture
def here(context):
    def at(round, num_rounds=10):
        return replace(
            context(NAMES) if callable(context) else context, round=round, num_rounds=num_rounds
        )

    return at


def policy_of(cluster_size=None, **options):
    inner = LikelihoodAssociation(
        num_clusters=2,
        objective=Objective(),
        temperature=1.0,
        cluster_size=cluster_size or ClusterSize(),
    )
    return AnnealedAssociation(inner, **options)


def labels_of(policy, hypothesis, here, gap=1.0):
    def answer(score):
        first, second = score.models
        return {first: LossSum(1.0, 0.0, 5), second: LossSum(1.0 + gap, 0.0, 5)}

    candidate = next(iter(drive(policy.associate(hypothesis, here), answer)))
    return candidate.association.labels


def test_frequencies_are_those_of_the_softmax(hypothesis, here):
    """At temperature 2 a gap of one nat leaves the worse cluster exp(-1/2) as probable."""
    policy = policy_of(temperature=2.0, until=10**6)
    drawn = [labels_of(policy, hypothesis, here(round, num_rounds=10**6)) for round in range(300)]
    counts = np.bincount(np.concatenate(drawn), minlength=2)
    worse = np.exp(-0.5) / (1 + np.exp(-0.5))
    assert chisquare(counts, counts.sum() * np.array([1 - worse, worse])).pvalue > 0.01


def test_the_best_is_taken_once_the_temperature_is_zero(hypothesis, here):
    policy = policy_of(temperature=50.0, until=0.5)
    assert any(labels_of(policy, hypothesis, here(0)))
    for round in (5, 9):
        assert not any(labels_of(policy, hypothesis, here(round)))


def test_draws_depend_on_seed_and_round_alone(hypothesis, here):
    policy = policy_of(temperature=50.0)
    first, again, later = (labels_of(policy, hypothesis, here(r)).tolist() for r in (0, 0, 1))
    assert first == again != later


def test_bounds_on_sizes_hold(hypothesis, here):
    policy = policy_of(ClusterSize(2, 4), temperature=20.0)
    for round in range(5):
        sizes = np.bincount(labels_of(policy, hypothesis, here(round), gap=3.0), minlength=2)
        assert sizes.min() >= 2
        assert sizes.max() <= 4


@pytest.mark.parametrize(
    ("options", "words"),
    [({"temperature": 0.0}, "temperature must be above 0"), ({"until": -1}, "until must be")],
)
def test_bad_schedules_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        policy_of(**options)
