from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies.updates.clustering_temperature import (
    AtRound,
    TemperatureRise,
    clustering_temperature,
)
from bcfl.policies.updates.one_shot import OneShotClustering, majority
from bcfl.policies.updates.update_clustering import AgglomerativeClustering, KMeansClustering
from bcfl.policies.updates.update_similarity import cosine_distances
from bcfl.protocol.answers import Trained

OBJECTIVE = Objective(curvature="uniform")
NAMES = tuple("abcdef")
EAST, NORTH = (1.0, 0.1), (0.1, 1.0)
TWO_WAYS = {"a": EAST, "b": NORTH, "c": EAST, "d": NORTH, "e": EAST, "f": NORTH}


@pytest.fixture
def parent(linear, newborn):
    return Hypothesis(clusters=(newborn(linear, 0),), association=Association.unseen(NAMES, 1))


@pytest.fixture
def after(linear, context):
    """What a policy makes of clients whose updates begin with given numbers."""

    def of(policy, hypothesis, updates, round=0, participants=NAMES):
        models = {p.key: p for p in (*hypothesis.clusters, *hypothesis.carried_models.values())}

        def answer(request):
            if request.client in updates:
                mean = models[request.start].mean(linear).clone()
                update = torch.tensor(updates[request.client])
                mean[: len(update)] += update
                return Trained(
                    mean=mean, buffers=torch.empty(0), curvature=torch.ones(()), num_samples=2
                )

        ranking = drive(policy.associate(hypothesis, context(participants, round)), answer)
        (chosen,) = ranking
        return chosen, ranking.facts

    return of


@pytest.fixture
def followed():
    """The hypothesis after a candidate, with the models that its clusters continue from."""

    def of(hypothesis, chosen):
        clusters = tuple(origin.posterior(hypothesis) for origin in chosen.origins)
        return Hypothesis(
            clusters=clusters,
            association=chosen.association,
            state=chosen.state,
            carried_models=chosen.carried_models,
        )

    return of


def test_before_the_shot_there_is_one_cluster_and_the_temperature_is_remembered(parent, after):
    chosen, facts = after(OneShotClustering(OBJECTIVE), parent, TWO_WAYS)
    vectors = np.array([TWO_WAYS[name] for name in NAMES])
    wanted = clustering_temperature(cosine_distances(vectors @ vectors.T))
    assert facts == {"clustering_temperature": pytest.approx(wanted, abs=1e-6)}
    assert chosen.state == {"temperature": facts["clustering_temperature"]}
    assert chosen.association.labels.tolist() == [0] * 6
    assert chosen.contribution_weights.tolist() == [[1.0]] * 6
    assert len(chosen.answers) == 6


def test_the_first_rise_divides_the_clients_once_and_for_all(parent, after, followed):
    policy = OneShotClustering(OBJECTIVE)
    first, cool = after(policy, parent, dict.fromkeys(NAMES, EAST))
    then = followed(parent, first)
    shot, warm = after(policy, then, TWO_WAYS, 1)
    assert warm["clustering_temperature"] > cool["clustering_temperature"]
    assert shot.association.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert [origin.posterior(then) for origin in shot.origins] == [then.clusters[0]] * 2
    assert shot.contribution_weights.tolist() == [[1, 0], [0, 1]] * 3
    assert shot.state == {"clustered": True}
    assert shot.carried_models == {}
    divided = followed(then, shot)
    later, facts = after(policy, divided, dict.fromkeys(NAMES, EAST), 2)
    assert later.association.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert facts == {}
    assert later.answers == {}


def test_the_printed_rule_fires_in_the_first_round(parent, after):
    policy = OneShotClustering(OBJECTIVE, trigger=TemperatureRise(rule="printed"))
    assert after(policy, parent, TWO_WAYS)[0].association.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_fixed_round_clusters_then(parent, after, followed):
    policy = OneShotClustering(OBJECTIVE, KMeansClustering(2), AtRound(1))
    first, _ = after(policy, parent, TWO_WAYS)
    assert first.association.num_clusters == 1
    second, _ = after(policy, followed(parent, first), TWO_WAYS, 1)
    assert second.association.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_shot_that_finds_one_group_is_spent(parent, after, followed):
    policy = OneShotClustering(OBJECTIVE, KMeansClustering(1), AtRound(0))
    shot, _ = after(policy, parent, TWO_WAYS)
    assert shot.association.labels.tolist() == [0] * 6
    assert shot.state == {"clustered": True}
    assert after(policy, followed(parent, shot), TWO_WAYS, 1)[1] == {}


def test_late_clients_join_the_part_that_their_update_resembles(parent, after, followed, linear):
    policy = OneShotClustering(OBJECTIVE, KMeansClustering(2), AtRound(1))
    first, _ = after(policy, parent, TWO_WAYS, participants=tuple("abcde"))
    then = followed(parent, first)
    shot, _ = after(policy, then, TWO_WAYS, 1, participants=tuple("abcd"))
    assert shot.association.labels.tolist() == [0, 1, 0, 1, 0, -1]
    assert shot.state["waiting"] == {"e": 0}
    start = then.clusters[0].mean(linear)
    east, north = (_moved(then.clusters[0], linear, start, to) for to in (EAST, NORTH))
    divided = Hypothesis(
        clusters=(east, north),
        association=shot.association,
        state=shot.state,
        carried_models=shot.carried_models,
    )
    swapped = {**TWO_WAYS, "e": NORTH, "f": (0.9, 0.2)}
    later, _ = after(policy, divided, swapped, 2)
    assert later.association.labels.tolist() == [0, 1, 0, 1, 1, 0]
    assert later.state == {"clustered": True}
    assert {t.client: t.start for t in later.trainings}["e"] == north.key


def _moved(posterior, model, start, to):
    mean = start.clone()
    mean[:2] += torch.tensor(to)
    block = posterior.blocks[0]
    gaussian = replace(block.gaussian, mean=mean)
    return replace(posterior, blocks=(replace(block, key=f"moved {to}", gaussian=gaussian),))


def test_a_client_that_does_not_move_has_a_place(parent, after, followed):
    policy = OneShotClustering(OBJECTIVE)
    updates = {**TWO_WAYS, "f": (0.0, 0.0)}
    first, facts = after(policy, parent, dict.fromkeys(NAMES, EAST))
    assert facts["clustering_temperature"] == pytest.approx(0, abs=1e-3)
    shot, facts = after(policy, followed(parent, first), updates, 1)
    assert np.isfinite(facts["clustering_temperature"])
    assert (shot.association.labels >= 0).all()


@pytest.mark.parametrize("answering", [(), ("c",)])
def test_with_fewer_than_two_answers_nothing_is_measured(parent, after, answering):
    policy = OneShotClustering(OBJECTIVE, trigger=AtRound(0))
    warm = replace(parent, state={"temperature": 0.25})
    chosen, facts = after(policy, warm, {name: EAST for name in answering})
    assert facts == {}
    assert chosen.state == {"temperature": 0.25}
    assert chosen.association.num_clusters == 1
    assert [t.client for t in chosen.trainings] == list(answering)


def test_a_second_shot_finds_a_group_that_was_absent_at_first(parent, after, followed):
    """The group of e and f, whose updates point away from those of both others."""
    three_ways = {**TWO_WAYS, "e": (-1.0, -1.0), "f": (-1.0, -1.0)}
    policy = OneShotClustering(OBJECTIVE, AgglomerativeClustering(0.5), AtRound(0), shots=2)
    first, _ = after(policy, parent, three_ways, participants=tuple("abcd"))
    assert first.association.labels.tolist() == [0, 1, 0, 1, -1, -1]
    assert first.state["shots"] == 1
    between = followed(parent, first)
    second, facts = after(policy, between, three_ways, 1)
    labels = second.association.labels.tolist()
    assert labels[:4] == [0, 1, 0, 1]
    assert labels[4:] == [2, 2]
    vectors = np.array([three_ways[name] for name in NAMES])
    wanted = clustering_temperature(cosine_distances(vectors @ vectors.T))
    assert facts == {"clustering_temperature": pytest.approx(wanted, abs=1e-6)}
    assert second.state["clustered"]
    once = replace(policy, shots=1)
    only, _ = after(once, parent, three_ways, participants=tuple("abcd"))
    late, _ = after(once, followed(parent, only), three_ways, 1)
    assert set(late.association.labels.tolist()) == {0, 1}


def test_shots_are_counted_and_groups_go_on_from_most_of_their_clients(parent, after, followed):
    policy = OneShotClustering(OBJECTIVE, KMeansClustering(2), AtRound(0), shots=3)
    hypothesis = parent
    for round in range(3):
        chosen, _ = after(policy, hypothesis, TWO_WAYS, round)
        assert chosen.association.labels.tolist() == [0, 1, 0, 1, 0, 1]
        hypothesis = followed(hypothesis, chosen)
    assert hypothesis.state == {"clustered": True}
    assert hypothesis.carried_models == {}
    groups, clusters = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 0, 0, 2, 2])
    assert majority(groups, clusters).tolist() == [1, 1, 1, 0, 0, 2]
    with pytest.raises(ValueError, match="shots must be a whole number of at least 1, got 0"):
        OneShotClustering(OBJECTIVE, shots=0)
