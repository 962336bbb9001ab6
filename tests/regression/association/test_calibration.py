"""The probability that two clients share a cluster is a probability.

Clients of four groups see digits that are rotated by quarter turns. A pair's probability needs no
matching of labels, and is scored against whether the two are of one group: it must say more than
the share of such pairs alone does, and be right as often as it claims.
"""

import numpy as np
import pytest

FEW, MANY = 12, 44
NAMES = ["bcfl-g", "bcfl-mht-8"]
LEAST = 1e-6


def log_loss(probabilities, outcomes):
    """Mean negative log probability of what is true, nats per pair."""
    p = np.clip(probabilities, LEAST, 1 - LEAST)
    return -np.where(outcomes, np.log(p), np.log(1 - p)).mean()


def base_rate(outcomes):
    """Log loss of the share of true outcomes, said of every pair."""
    return log_loss(np.full(len(outcomes), outcomes.mean()), outcomes)


def overconfidence(probabilities, outcomes):
    """How much surer than right the answers are that claim to be nearly certain."""
    confidence = np.maximum(probabilities, 1 - probabilities)
    sure = confidence > 0.95
    if not sure.any():
        return 0.0
    return confidence[sure].mean() - ((probabilities > 0.5) == outcomes)[sure].mean()


@pytest.mark.parametrize("source", ["marginal", "graph"])
@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_told_better_than_by_the_base_rate(pairs, name, source):
    found = pairs(name, FEW)
    assert log_loss(getattr(found, source), found.same) < base_rate(found.same)


@pytest.mark.parametrize("source", ["marginal", "graph"])
@pytest.mark.parametrize("name", NAMES)
def test_certainty_is_matched_by_accuracy(pairs, name, source):
    found = pairs(name, FEW)
    assert overconfidence(getattr(found, source), found.same) < 0.05


def test_many_samples_leave_little_doubt(pairs):
    found = pairs("bcfl-mht-8", MANY)
    assert log_loss(found.marginal, found.same) < base_rate(found.same)
    assert overconfidence(found.marginal, found.same) < 0.05
