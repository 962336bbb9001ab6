import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import candidate
from bcfl.policies.updates.divisions import Division, Divisions, divide, regrouped
from bcfl.protocol.answers import Trained

OBJECTIVE = Objective(curvature="uniform")
NAMES = ("a", "b", "c", "d", "e")


def at(model, key, *values):
    mean = torch.zeros(8)
    mean[: len(values)] = torch.tensor(values, dtype=torch.float32)
    return from_initial(model, key, mean, torch.empty(0), 1.0)


def ended(*values):
    mean = torch.zeros(8)
    mean[: len(values)] = torch.tensor(values, dtype=torch.float32)
    return Trained(mean=mean, buffers=torch.empty(0), curvature=torch.ones(()), num_samples=3)


def answer(steps, ends):
    """Drive a generator whose trainings end at a place for each client; returns what was asked."""

    def of(request):
        return ended(*ends[request.client]) if request.client in ends else None

    result, exchanges = drive(steps, of, return_exchanges=True)
    return exchanges, result


def test_the_largest_group_keeps_the_number_and_others_get_new_ones():
    labels, made = divide(np.array([0, 1, 1, 1, 0, 1]), np.array([5, 3, 0, 0, 5, 9]), 2)
    assert labels.tolist() == [0, 2, 1, 1, 0, 3]
    assert made == [Division(0, (0,)), Division(1, (1, 2, 3))]


def test_groups_of_equal_size_are_ordered_by_their_first_client():
    labels, made = divide(np.zeros(4, dtype=int), np.array([1, 0, 0, 1]), 1)
    assert labels.tolist() == [0, 1, 1, 0]
    assert made == [Division(0, (0, 1))]


@pytest.mark.parametrize("seed", range(20))
def test_divided_clusters_are_a_refinement(seed):
    random = np.random.default_rng(seed)
    before = random.integers(3, size=12)
    groups = random.integers(3, size=12)
    labels, made = divide(before, groups, 3)
    for i in range(12):
        for j in range(12):
            together = before[i] == before[j] and groups[i] == groups[j]
            assert (labels[i] == labels[j]) == together
    parts = sorted(part for one in made for part in one.parts)
    assert len(parts) == len(set(parts))
    assert set(labels) == set(parts)
    assert set(parts) | {0, 1, 2} == set(range(max(2, *parts) + 1))


def test_parts_continue_from_the_cluster_that_was_divided(linear):
    clusters = (at(linear, "x", 0), at(linear, "y", 1))
    parent = Hypothesis(
        clusters=clusters, association=Association(NAMES, np.array([0, 1, 1, 1, 0]), 2)
    )
    chosen = candidate(parent, {"a": 0, "b": 1, "c": 1, "d": 1}, OBJECTIVE)
    made = [Division(0, (0,)), Division(1, (1, 2, 3))]
    after = regrouped(chosen, {"a": 0, "b": 3, "c": 2, "d": 1}, made)
    assert after.association.labels.tolist() == [0, 3, 2, 1, 0]
    assert [origin.posterior(parent) for origin in after.origins] == [
        clusters[i] for i in (0, 1, 1, 1)
    ]
    assert after.contribution_weights.tolist() == np.eye(4)[[0, 3, 2, 1]].tolist()
    assert after.trainings == chosen.trainings


@pytest.fixture
def tree(linear):
    """Cluster 0 was divided into 0 and 1, then 1 into 1 and 2; a, b, c are there, d missed both."""
    models = {
        "0 divided": at(linear, "start", 0, 0, 0),
        "0 part 0": at(linear, "left", 1, 0, 0),
        "0 part 1": at(linear, "right", -1, 0, 0),
        "1 divided": at(linear, "middle", -3, 0, 0),
        "1 part 1": at(linear, "up", -3, 2, 0),
        "1 part 2": at(linear, "down", -3, -2, 0),
    }
    clusters = tuple(at(linear, f"now {i}", i, 7, 7) for i in range(3))
    association = Association(NAMES, np.array([0, 1, 2, 0, -1]), 3)
    state = {"divisions": [[0, [0, 1]], [1, [1, 2]]], "waiting": {"d": 0}}
    return Hypothesis(
        clusters=clusters, association=association, state=state, carried_models=models
    )


def test_late_clients_descend_the_tree(tree, context):
    divisions = Divisions.of(tree)
    ends = {"d": (-9, -5, 0), "e": (5, 1, 0)}
    asked, (after, places) = answer(divisions.assign(tree, context(NAMES), OBJECTIVE), ends)
    assert places == {"a": 0, "b": 1, "c": 2, "d": 2, "e": 0}
    keys = [{(r.client, r.start) for r in exchange.requests} for exchange in asked]
    start, middle = tree.carried_models["0 divided"].key, tree.carried_models["1 divided"].key
    assert keys == [{("d", start), ("e", start)}, {("d", middle)}]
    assert after.waiting == {}
    assert start in asked[0].models


def test_who_missed_the_second_division_alone_starts_there(tree, context):
    waiting = Hypothesis(
        clusters=tree.clusters,
        association=Association(NAMES, np.array([0, 1, 2, 1, 0]), 3),
        state={**tree.state, "waiting": {"d": 1, "e": 1}},
        carried_models=tree.carried_models,
    )
    asked, (_, places) = answer(
        Divisions.of(waiting).assign(waiting, context(("d", "e")), OBJECTIVE), {"d": (-3, 1, 0)}
    )
    assert places == {"d": 1, "e": 0}
    assert [[r.client for r in exchange.requests] for exchange in asked] == [["d"]]


def test_who_gives_no_answer_goes_on_waiting(tree, context):
    divisions = Divisions.of(tree)
    _, (after, places) = answer(divisions.assign(tree, context(("a", "d", "e")), OBJECTIVE), {})
    assert places == {"a": 0}
    assert after.waiting == {"d": 0}


def test_divisions_are_carried_on_until_all_clients_are_assigned(tree, context):
    divisions = Divisions.of(tree)
    ends = {"d": (4, 0, 0), "e": (4, 0, 0)}
    _, (later, places) = answer(divisions.assign(tree, context(("a", "d")), OBJECTIVE), ends)
    chosen = candidate(tree, places, OBJECTIVE)
    carried = later.carried_by(chosen, {"clustered": True})
    assert carried.state == {
        "clustered": True,
        "divisions": [[0, [0, 1]], [1, [1, 2]]],
        "waiting": {},
    }
    assert carried.carried_models == tree.carried_models
    _, (done, places) = answer(divisions.assign(tree, context(NAMES), OBJECTIVE), ends)
    forgotten = done.carried_by(candidate(tree, places, OBJECTIVE), {"clustered": True})
    assert forgotten.state == {"clustered": True}
    assert forgotten.carried_models == {}


def test_a_division_makes_absent_members_wait_and_is_known_a_round_later(linear):
    clusters = (at(linear, "x", 0), at(linear, "y", 1))
    parent = Hypothesis(
        clusters=clusters, association=Association(NAMES, np.array([0, 0, 1, 1, -1]), 2)
    )
    made = [Division(0, (0,)), Division(1, (1, 2))]
    after = Divisions().extended(parent, made, {"a": 0, "c": 1})
    assert after.divisions == (Division(1, (1, 2)),)
    assert after.waiting == {"d": 0}
    assert after.models == {"0 divided": clusters[1]}
    grown = (*clusters, at(linear, "z", 2))
    then = Hypothesis(
        clusters=grown,
        association=Association(NAMES, np.array([0, 0, 1, 1, -1]), 3),
        state={"divisions": [[1, [1, 2]]], "waiting": {"d": 0}},
        carried_models=after.models,
    )
    known = Divisions.of(then)
    assert known.models == {
        "0 divided": clusters[1],
        "0 part 1": grown[1],
        "0 part 2": grown[2],
    }


def test_before_any_division_newcomers_join_the_largest_cluster(linear, context):
    parent = Hypothesis(clusters=(at(linear, "x", 0),), association=Association.unseen(NAMES, 1))
    asked, (_, places) = answer(Divisions.of(parent).assign(parent, context(("b",)), OBJECTIVE), {})
    assert (asked, places) == ([], {"b": 0})


def test_a_late_client_whose_update_is_zero_has_a_place(tree, context):
    """Its cosine is 0 with every part, so it takes the first."""
    divisions = Divisions.of(tree)
    ends = {"d": (0, 0, 0)}
    _, (_, places) = answer(divisions.assign(tree, context(("d",)), OBJECTIVE), ends)
    assert places == {"d": 0}
