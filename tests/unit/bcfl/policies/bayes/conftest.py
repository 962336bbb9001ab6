import pytest

from bcfl import Association, Hypothesis


@pytest.fixture
def parent(linear, newborn):
    """Two clusters, and three clients that none of them has seen."""
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return Hypothesis(clusters=clusters, association=Association.unseen(("a", "b", "c"), 2))
