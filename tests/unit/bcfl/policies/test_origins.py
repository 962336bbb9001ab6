"""Which clusters go on in which: what candidates say, and what hypotheses and snapshots keep."""

from dataclasses import replace

import numpy as np
import pytest

from bcfl import Association, Hypothesis, HypothesisSet, Objective
from bcfl.hypotheses import Snapshot
from bcfl.policies import Continue, Given, candidate
from bcfl.policies.baselines.linkage import Regrouping
from bcfl.policies.origins import continued
from bcfl.policies.updates.divisions import Division, regrouped
from bcfl.trackers.moves import (
    Split,
    merge_clusters,
    remove_cluster,
    split_cluster,
    with_empty_cluster,
)


@pytest.fixture
def parent(linear, newborn):
    clusters = tuple(newborn(linear, index) for index in range(3))
    association = Association(("a", "b", "c", "d"), np.array([0, 1, 2, 2]), 3)
    return Hypothesis(clusters=clusters, association=association)


def of(chosen, before):
    return continued(chosen.origins, before)


def test_clusters_of_the_usual_candidate_keep_their_indices(parent):
    assert of(candidate(parent, {}, Objective()), len(parent.clusters)) == ()


def test_a_given_model_is_a_new_cluster_unless_it_says_which(linear, newborn):
    assert continued((Given(newborn(linear, 1)), Continue(0)), 2) == (-1, 0)
    assert continued((Given(newborn(linear, 1), 1), Continue(0)), 2) == (1, 0)


def test_fewer_clusters_are_told_even_if_the_last_is_gone():
    assert continued((Continue(0), Continue(1)), 3) == (0, 1)
    assert continued((Continue(0), Continue(1)), 2) == ()


def test_moves_tell_what_becomes_of_each_cluster(parent):
    count = len(parent.clusters)
    labels = {name: index % count for index, name in enumerate(parent.association.clients)}
    chosen = candidate(parent, labels, Objective())
    split = Split(cluster=count - 1, leaving=frozenset(), explained=0.5, num_members=4)
    assert of(split_cluster(chosen, split, 0), count) == (-1, *range(1, count))
    born = split_cluster(with_empty_cluster(chosen), split, -1)
    assert of(born, count) == (*range(count), -1)
    assert of(remove_cluster(chosen, 0), count) == tuple(range(1, count))
    assert of(merge_clusters(chosen, 0, count - 1), count) == tuple(range(1, count))


def test_the_largest_part_of_a_divided_cluster_goes_on(parent):
    count = len(parent.clusters)
    chosen = candidate(parent, {}, Objective())
    divided = regrouped(chosen, {}, [Division(1, (1, count))])
    assert of(divided, count) == (*range(count), -1)


def test_a_regrouping_tells_merged_removed_and_opened_clusters(parent):
    labels = {"a": 1, "b": 2, "c": 3}
    found = Regrouping.of(labels, {}, [0, 1, 2, 1], np.arange(4), np.ones(4))
    assert continued(found.applied(parent)[1], 3) == (1, 2, -1)
    merged = Regrouping.of(labels, {}, [0, 1, 2, 1], np.array([0, 1, 1, 2]), np.array([1, 1, 2, 1]))
    assert continued(merged.applied(parent)[1], 3) == (2, -1)


@pytest.mark.parametrize(("kept", "expected"), [((1, 0, 2), ((1, 0, 2), ())), ((), ())])
def test_snapshots_hold_them_where_any_changes(parent, kept, expected):
    pair = [replace(parent, continues=kept, parents=(0,)), replace(parent, parents=(0,))]
    hypotheses = HypothesisSet.weighted(pair, 1, 0.0)
    assert Snapshot.of(hypotheses).continues == expected


def test_relabelled_clusters_continue_what_they_did(parent):
    count = len(parent.clusters)
    shift = np.roll(np.arange(count), -1)
    moved = parent.relabelled(shift)
    assert moved.relabelled(np.argsort(shift)).continues in ((), tuple(range(count)))
    for index, new in enumerate(shift):
        assert moved.continues[new] == index
    assert parent.relabelled(np.arange(count)).continues == ()
