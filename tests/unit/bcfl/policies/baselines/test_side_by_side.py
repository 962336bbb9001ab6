import numpy as np
import pytest

from bcfl import Association, ClientData, Federation, Hypothesis, Objective, drive, methods
from bcfl.policies import Continue, FedAvg, LocalTraining
from bcfl.policies.baselines.side_by_side import SideBySide

NAMES = ("a", "b", "c")
BOTH = SideBySide((FedAvg(Objective()), LocalTraining(Objective())))


@pytest.fixture
def parent(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return Hypothesis(clusters=clusters, association=Association.unseen(NAMES, 2))


def test_each_policy_has_clusters_of_its_own(parent, context):
    (chosen,) = drive(BOTH.associate(parent, context(("a", "c"))))
    one, other = parent.clusters
    assert [(t.client, t.start) for t in chosen.trainings] == [
        ("a", one.key),
        ("c", one.key),
        ("a", other.key),
        ("c", other.key),
    ]
    assert chosen.contribution_weights.tolist() == [
        [1, 0, 0, 0],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 1],
    ]
    assert chosen.origins[0] == Continue(0)
    assert [origin.posterior(parent) for origin in chosen.origins[1:]] == [other] * 3
    assert chosen.association.labels.tolist() == [1, -1, 3]
    half = [[0.5, 0.5, 0, 0], [0, 0, 0, 0], [0.5, 0, 0, 0.5]]
    np.testing.assert_array_equal(chosen.association.serving, half)


def test_parts_go_on_from_their_own_state(linear, parent, newborn, context):
    (first,) = drive(BOTH.associate(parent, context(("a", "c"))))
    clusters = tuple(newborn(linear, seed) for seed in range(4))
    later = Hypothesis(clusters=clusters, association=first.association, state=first.state)
    (second,) = drive(BOTH.associate(later, context(("b", "c"), round=1)))
    assert second.origins == tuple(map(Continue, range(4)))
    assert second.association.labels.tolist() == [1, 2, 3]
    keys = [cluster.key for cluster in clusters]
    starts = [(t.client, t.start) for t in second.trainings]
    assert starts == [("b", keys[0]), ("c", keys[0]), ("b", keys[2]), ("c", keys[3])]


def test_each_policy_may_have_as_many_clusters_as_there_are_clients(linear):
    """Together they have more, and each is refused by its own number alone."""
    random = np.random.default_rng(0)
    samples = random.normal(size=(4, 20, 3)), random.integers(0, 2, size=(4, 20))
    pairs = enumerate(zip(*samples, strict=True))
    clients = [ClientData.from_arrays(f"c{i}", pair, pair) for i, pair in pairs]
    run = Federation(clients, linear, methods.build("fedavg+ifca", num_clusters=4)).run(2)
    assert len(run.hypotheses.best.clusters) == 5
    with pytest.raises(ValueError, match="at most the number of clients, 4, got 5"):
        Federation(clients, linear, methods.build("fedavg+ifca", num_clusters=5))


def test_one_policy_is_no_ensemble():
    with pytest.raises(ValueError, match="policies must be at least two, got 1"):
        SideBySide((FedAvg(Objective()),))
