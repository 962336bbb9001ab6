import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import Continue, FedAvg, Ranking, candidate
from bcfl.protocol.requests import Train


@pytest.fixture
def parent(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    association = Association(("a", "b", "c"), np.array([0, -1, 1]), 2)
    return Hypothesis(clusters=clusters, association=association, state={"kept": 1})


def test_a_candidate_trains_each_client_for_its_cluster(parent):
    zero, one = (posterior.key for posterior in parent.clusters)
    chosen = candidate(parent, {"c": 0, "b": 1}, Objective(), log_weight=-2.0)
    assert chosen.association.labels.tolist() == [0, 1, 0]
    assert chosen.trainings == (Train("b", one, Objective()), Train("c", zero, Objective()))
    assert chosen.contribution_weights.tolist() == [[0, 1], [1, 0]]
    assert chosen.origins == (Continue(0), Continue(1))
    assert chosen.origins[1].posterior(parent) is parent.clusters[1]
    assert (chosen.log_weight, chosen.state) == (-2.0, {"kept": 1})


@pytest.mark.parametrize("label", [-1, 2])
def test_a_candidate_refuses_clusters_that_are_not_there(parent, label):
    with pytest.raises(ValueError, match=f"labels must lie between 0 and 1, got {label} for 'b'"):
        candidate(parent, {"a": 0, "b": label}, Objective())


def test_a_candidate_refuses_clients_that_are_not_there(parent):
    with pytest.raises(ValueError, match="labels name clients that are not there: 'x'"):
        candidate(parent, {"x": 0}, Objective())


def test_a_single_cluster_takes_every_participant(linear, newborn, context):
    parent = Hypothesis(
        clusters=(newborn(linear),), association=Association.unseen(("a", "b", "c"), 1)
    )
    (chosen,) = drive(FedAvg(Objective()).associate(parent, context(("a", "c"))))
    assert chosen.association.labels.tolist() == [0, -1, 0]


def test_the_only_candidate_is_all_the_weight_there_is(parent):
    ranking = Ranking.only(candidate(parent, {"a": 0}, Objective(), log_weight=-2.0))
    assert ranking.log_total == -2.0
    assert len(list(ranking)) == 1
