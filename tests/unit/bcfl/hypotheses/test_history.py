"""Today's weight, handed down to the hypotheses of past rounds; all by hand."""

from dataclasses import replace

import numpy as np
import pytest

from bcfl import Aggregation, Association, Hypothesis, HypothesisSet
from bcfl.aggregation.merging import merge_hypotheses
from bcfl.analysis.graphs import client_cluster_graph
from bcfl.hypotheses.history import Proposed, Snapshot, ancestor_shares, smoothed_associations

NAMES = ("a", "b", "c")


def association(*labels, clusters=2):
    return Association(NAMES, np.array(labels), clusters)


def snapshot(round, *rows, proposals=()):
    """A snapshot of (weight, labels, parents) rows and of (labels, parent) proposals."""
    return Snapshot(
        round=round,
        log_weights=np.log([weight for weight, _, _ in rows]),
        associations=tuple(association(*labels) for _, labels, _ in rows),
        parents=tuple(parents for _, _, parents in rows),
        log_captured_mass=0.0,
        proposals=tuple(
            Proposed(association(*labels), parent, "split") for labels, parent in proposals
        ),
    )


@pytest.fixture
def history():
    """Round 1 has two hypotheses and a proposal (2); the second of round 2 comes of it."""
    return (
        snapshot(
            1,
            (0.9, (0, 0, 1), (0,)),
            (0.1, (0, 1, 1), (0,)),
            proposals=[((1, 0, 0), 0)],
        ),
        snapshot(2, (0.5, (0, 0, 1), (0,)), (0.3, (0, 1, 0), (2,)), (0.2, (1, 1, 0), (1,))),
        snapshot(3, (0.6, (0, 1, 0), (1,)), (0.3, (0, 0, 1), (0,)), (0.1, (0, 0, 0), (1,))),
    )


def test_weights_go_to_the_ancestors(history):
    assert ancestor_shares(history, 3).tolist() == pytest.approx([0.6, 0.3, 0.1])
    assert ancestor_shares(history, 2).tolist() == pytest.approx([0.3, 0.7, 0.0])
    assert ancestor_shares(history, 1).tolist() == pytest.approx([0.3, 0.0, 0.7])
    assert ancestor_shares(history[:2], 1).tolist() == pytest.approx([0.5, 0.2, 0.3])
    assert ancestor_shares(history[:1], 1).tolist() == pytest.approx([0.9, 0.1, 0.0])


def test_proposals_of_today_hold_no_share():
    today = snapshot(1, (1.0, (0, 0, 1), (0,)), proposals=[((1, 0, 0), 0), ((1, 1, 0), 0)])
    assert ancestor_shares((today,), 1).tolist() == [1.0, 0.0, 0.0]


def test_a_merged_hypothesis_shares_equally_among_its_parents():
    history = (
        snapshot(1, (0.5, (0, 0, 1), (0,)), (0.3, (0, 1, 1), (0,)), (0.2, (1, 1, 1), (0,))),
        snapshot(2, (0.8, (0, 0, 1), (0, 2)), (0.2, (1, 1, 1), (2,))),
    )
    assert ancestor_shares(history, 1).tolist() == pytest.approx([0.4, 0.0, 0.6])


def test_associations_of_the_past_are_weighed_from_today(history):
    """Round 2: hypothesis 1 leads with .7; hypothesis 0 matches it under its own numbers."""
    smoothed = smoothed_associations(history, 2)
    zero = 0.3 * association(0, 0, 1).serving
    one = 0.7 * association(0, 1, 0).serving
    assert any(np.allclose(smoothed, named + one) for named in (zero, zero[:, ::-1]))
    np.testing.assert_allclose(smoothed.sum(axis=1), 1)


def test_clusters_are_named_as_in_the_ancestor_of_the_largest_share():
    history = (
        snapshot(1, (0.8, (0, 0, 1), (0,)), (0.2, (1, 1, 0), (0,))),
        snapshot(2, (0.6, (0, 0, 1), (1,)), (0.4, (0, 0, 1), (0,))),
    )
    assert smoothed_associations(history, 1).tolist() == [[0, 1], [0, 1], [1, 0]]
    assert smoothed_associations(history[:1], 1).tolist() == [[1, 0], [1, 0], [0, 1]]


def test_clients_not_seen_by_then_have_an_empty_row():
    history = (snapshot(1, (1.0, (0, -1, 1), (0,))), snapshot(2, (1.0, (0, 0, 1), (0,))))
    assert smoothed_associations(history, 1).tolist() == [[1, 0], [0, 0], [0, 1]]
    some = (snapshot(1, (0.75, (0, -1, 1), (0,)), (0.25, (0, 0, 1), (0,))),)
    assert smoothed_associations(some, 1).tolist() == [[1, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize("round", [0, 4, -1])
def test_rounds_that_were_not_done_are_refused(history, round):
    message = f"round must be a whole number between 1 and 3, got {round}"
    with pytest.raises(ValueError, match=message):
        ancestor_shares(history, round)
    with pytest.raises(ValueError, match=message):
        smoothed_associations(history, round)


@pytest.mark.parametrize("leader", [2, 3])
def test_hypotheses_of_different_numbers_of_clusters_are_summed(linear, newborn, leader):
    """The third cluster has no counterpart among two, so it follows them."""
    both = {2: association(0, 1, 1), 3: association(2, 1, 0, clusters=3)}
    hypotheses = HypothesisSet.weighted(
        [
            Hypothesis(
                clusters=tuple(newborn(linear, 10 * k + i) for i in range(k)),
                association=one,
                log_weight=np.log(0.75 if k == leader else 0.25),
                parents=(0,),
            )
            for k, one in both.items()
        ],
        1,
        0.0,
    )
    found = hypotheses.association_probabilities()
    light = 0.25
    if leader == 2:
        split = [[1, 0, 0], [0, 1, 0], [0, 0.75, light]], [[1, 0, 0], [0, 0.75, light], [0, 1, 0]]
    else:
        split = [[0, 0, 1], [0, 1, 0], [0.75, light, 0]], [[0, 0, 1], [light, 0.75, 0], [1, 0, 0]]
    assert any(np.allclose(found, expected) for expected in split)
    np.testing.assert_allclose(smoothed_associations([Snapshot.of(hypotheses)], 1), found)
    graph = client_cluster_graph(hypotheses)
    assert sum(graph.nodes[f"cluster-{i}"]["size"] for i in range(3)) == pytest.approx(3)


def test_a_merged_hypothesis_remembers_how_much_came_from_whom(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    association = Association.unseen(("a", "b"), 2)
    parts = [
        Hypothesis(
            clusters=clusters, association=association, log_weight=np.log(weight), parents=(parent,)
        )
        for weight, parent in ((0.6, 1), (0.3, 0), (0.1, 1))
    ]
    merged = merge_hypotheses(Aggregation(), linear, parts)
    assert merged.parents == (0, 1)
    np.testing.assert_allclose(merged.parent_shares, [0.3, 0.7])
    again = merge_hypotheses(
        Aggregation(), linear, [replace(merged, log_weight=0.0), replace(parts[1], log_weight=0.0)]
    )
    np.testing.assert_allclose(again.parent_shares, [0.65, 0.35])
