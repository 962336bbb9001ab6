from dataclasses import replace

import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.methods import build
from bcfl.policies import Continue, Given
from bcfl.policies.faacl.faacl import FAACL, INITIAL
from bcfl.protocol.statistics.support import SupportTest

NAMES = ("a", "b", "c")
POLICY = FAACL(objective=Objective(), cold_start=1, clustering=4)


@pytest.fixture
def beginning(linear, newborn):
    return Hypothesis(clusters=(newborn(linear),), association=Association.unseen(NAMES, 1))


@pytest.fixture
def going(linear, newborn):
    """Three devices in clusters of their own, and what they remember."""

    def of(seen=NAMES, **state):
        labels = np.array([seen.index(name) if name in seen else -1 for name in NAMES])
        clusters = tuple(newborn(linear, index) for index in range(len(seen)))
        remembered = {"partitions": [0] * len(seen), "supports": [], **state}
        kept = {INITIAL: newborn(linear, 9)}
        association = Association(NAMES, labels, len(seen))
        return Hypothesis(
            clusters=clusters, association=association, state=remembered, carried_models=kept
        )

    return of


def follow(policy, hypothesis, context, p_value=1.0):
    """Answer every test by one p-value; returns the tests, the candidate and the facts."""
    steps = policy.associate(hypothesis, context)
    ranking, exchanges = drive(steps, lambda _: SupportTest(p_value, 9, 9), return_exchanges=True)
    (chosen,) = ranking
    tests = [request for exchange in exchanges for request in exchange.requests]
    return tests, chosen, ranking.facts


def test_each_device_begins_alone_from_the_common_model(beginning, context):
    asked, chosen, facts = follow(POLICY, beginning, context(("a", "c")))
    assert not asked
    assert chosen.association.labels.tolist() == [0, -1, 1]
    assert {t.start for t in chosen.trainings} == {beginning.clusters[0].key}
    assert chosen.contribution_weights.tolist() == [[1, 0], [0, 1]]
    assert facts == {"clusters": 2, "supports": 0}
    assert chosen.carried_models == {INITIAL: beginning.clusters[0]}


def test_the_initial_model_is_dropped_once_all_devices_were_seen(beginning, context):
    _, chosen, _ = follow(POLICY, beginning, context(NAMES))
    assert chosen.carried_models == {}


def test_a_round_without_participants_changes_nothing(beginning, context):
    _, chosen, _ = follow(POLICY, beginning, context(()))
    assert chosen.trainings == ()
    assert chosen.association.labels.tolist() == [-1, -1, -1]


def test_unchanged_clusters_settle_and_are_not_tested_again(going, context):
    asked, chosen, _ = follow(POLICY, going(), context(NAMES, 1))
    assert len(asked) == 6
    assert chosen.state["converged"] is True
    asked, chosen, _ = follow(POLICY, going(converged=True), context(NAMES, 2))
    assert not asked
    assert chosen.state["converged"] is True


def test_while_a_device_is_absent_nothing_settles(going, context):
    _, chosen, _ = follow(POLICY, going(), context(("a", "b"), 1))
    assert chosen.state["converged"] is False


def test_mutual_supporters_merge_and_train_together(going, context):
    parent = going()
    _, chosen, facts = follow(POLICY, parent, context(NAMES, 1), p_value=0.05)
    assert chosen.association.labels.tolist() == [0, 0, 1]
    assert chosen.origins[0] in (Continue(0), Continue(1))
    assert chosen.origins[1] == Continue(2)
    assert facts["supports"] == 2  # the merged cluster and c support each other
    trained = sorted(
        (t.client, int(i))
        for t, f in zip(chosen.trainings, chosen.contribution_weights, strict=True)
        for i in np.flatnonzero(f)
    )
    assert trained == [(name, index) for name in NAMES for index in (0, 1)]
    assert chosen.association.sizes.tolist() == [2, 1]


def test_tests_end_with_their_share_of_the_run(going, context):
    asked = [len(follow(POLICY, going(), context(NAMES, round))[0]) for round in range(7)]
    assert asked == [0, 6, 6, 6, 6, 0, 0]


def test_a_newcomer_starts_from_the_first_model_and_opens_the_tests_again(going, context):
    parent = going(("a", "b"), converged=True)
    _, chosen, _ = follow(POLICY, parent, context(NAMES, 20))
    assert chosen.association.labels.tolist() == [0, 1, 2]
    assert isinstance(chosen.origins[2], Given)
    assert chosen.origins[2].posterior(parent) is parent.carried_models[INITIAL]
    assert (chosen.state["passes_left"], chosen.carried_models) == (3, {})
    asked, later, _ = follow(POLICY, going(**chosen.state), context(NAMES, 21))
    assert len(asked) == 6
    assert later.state["passes_left"] == 2


def test_the_hierarchy_tests_pairs_first(going, context):
    policy = replace(POLICY, hierarchical=True, clustering=3)  # three levels, a round each
    parent = going(partitions=[0, 1, 2])
    assert not follow(policy, parent, context(NAMES, 1))[0]
    asked, chosen, _ = follow(policy, parent, context(NAMES, 2))
    assert sorted(request.client for request in asked) == ["a", "c"]
    assert (chosen.state["partitions"], chosen.state["level"]) == ([0, 1, 0], 1)
    asked, chosen, _ = follow(policy, going(**chosen.state), context(NAMES, 3))
    assert len(asked) == 6
    assert chosen.state["partitions"] == [0, 0, 0]


def test_the_hierarchy_can_join_partitions_at_random(going, context):
    random = replace(POLICY, hierarchical=True, clustering=3, pairing="random")
    joined = set()
    for seed in range(12):
        now = replace(context(NAMES, 2), seed=seed)
        _, chosen, _ = follow(random, going(partitions=[0, 1, 2]), now)
        joined.add(tuple(chosen.state["partitions"]))
    assert len(joined) > 2
    assert all(sorted(one) in ([0, 0, 1], [0, 1, 1]) for one in joined)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"pairing": "sorted"}, "pairing must be 'fixed' or 'random', got 'sorted'"),
        ({"cold_start": -1}, "cold_start must be a whole number from 0"),
        ({"clustering": 1.5}, "clustering must be a whole number from 0"),
        ({"repeats": 0}, "repeats must be a whole number of at least 1, got 0"),
        ({"supporters_after_merge": "union"}, "supporters_after_merge must be 'intersection'"),
    ],
)
def test_impossible_numbers_are_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        replace(POLICY, **changes)


def test_the_recipes_need_held_out_samples():
    assert build("faacl").validation == 0.25
    assert build("faacl-h").policy.hierarchical
    with pytest.raises(ValueError, match="validation must be above 0, got 0"):
        build("faacl", validation=0.0)
