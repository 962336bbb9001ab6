"""Numbers of clusters over rounds, by hand: models stay, clients move."""

import numpy as np
import pytest

from bcfl import Association
from bcfl.hypotheses import LeadingClusters, Snapshot, cluster_numbers, renumbered
from bcfl.hypotheses.history import Proposed


def association(labels, clusters):
    return Association(tuple(f"c{i}" for i in range(len(labels))), np.array(labels), clusters)


def snapshot(round, *rows, clusters=3, continues=(), proposals=()):
    """Rows are (labels, parent), the most probable first; clusters may be given for each."""
    counts = clusters if isinstance(clusters, tuple) else (clusters,) * len(rows)
    weights = np.array([0.5**rank for rank in range(len(rows))])
    return Snapshot(
        round=round,
        log_weights=np.log(weights / weights.sum()),
        associations=tuple(
            association(labels, count) for (labels, _), count in zip(rows, counts, strict=True)
        ),
        parents=tuple((parent,) for _, parent in rows),
        log_captured_mass=0.0,
        proposals=tuple(
            Proposed(association(labels, counts[0]), parent, "split")
            for labels, parent in proposals
        ),
        continues=continues,
    )


def numbers(*history):
    return [[row.tolist() for row in rows] for rows in cluster_numbers(history)]


def test_clusters_keep_their_numbers_when_all_clients_move():
    history = [
        snapshot(1, ([0, 0, 1, -1], 0)),
        snapshot(2, ([1, 1, 0, 2], 0)),
        snapshot(3, ([0, 0, 2, 2], 0)),
    ]
    known = LeadingClusters.of(history)
    assert known.labels.tolist() == [[0, 0, 1, -1], [1, 1, 0, 2], [0, 0, 2, 2]]
    assert known.num_clusters == 3
    assert known.sizes.tolist() == [[2, 1, 0], [1, 2, 1], [2, 0, 2]]


def test_siblings_keep_their_numbers_when_the_lead_passes_between_them():
    one, other = [0, 0, 1, 1], [0, 1, 1, 1]
    history = [
        snapshot(1, (one, 0), (other, 0)),
        snapshot(2, ([1, 1, 2, 2], 1), ([1, 1, 1, 2], 0)),
        snapshot(3, ([1, 1, 2, 0], 1), ([1, 1, 1, 1], 0), proposals=[(one, 1)]),
        snapshot(4, ([2, 2, 2, 2], 2)),
    ]
    for rows in numbers(*history):
        assert all(row == [0, 1, 2] for row in rows)
    expected = [snapshot.associations[0].labels.tolist() for snapshot in history]
    assert LeadingClusters.of(history).labels.tolist() == expected


def test_clusters_of_another_start_are_matched_in_the_round_in_which_the_lead_passes():
    history = [
        snapshot(1, ([2, 2, 1, 1], 0), ([0, 0, 2, 2], 1)),
        snapshot(2, ([1, 1, 2, 2], 0), ([2, 2, 0, 0], 1)),
        snapshot(3, ([0, 0, 2, 2], 1)),
    ]
    assert numbers(*history)[2] == [[0, 1, 2]]
    assert numbers(*history)[1][1] == [0, 1, 2]
    first, second = (rows[0] for rows in numbers(*history)[:2])
    assert first == second
    assert (second[1], second[2]) == (2, 0)
    assert LeadingClusters.of(history).labels.tolist() == [[0, 0, 2, 2], [2, 2, 0, 0], [0, 0, 2, 2]]


def test_a_removed_cluster_leaves_the_others_their_identity():
    history = [
        snapshot(1, ([0, 1, 2, 2], 0)),
        snapshot(2, ([1, 1, 0, 0], 0), clusters=2, continues=((0, 2),)),
    ]
    assert numbers(*history) == [[[0, 2, 1]], [[0, 1]]]


def test_clusters_are_matched_by_clients_where_it_is_unknown_which_was_removed():
    history = [snapshot(1, ([0, 1, 2, 2], 0)), snapshot(2, ([1, 0, 1, 1], 0), clusters=2)]
    assert numbers(*history) == [[[2, 0, 1]], [[0, 1]]]


def test_a_new_cluster_has_a_new_number_at_the_index_of_another_too():
    history = [
        snapshot(1, ([0, 0, 1, 2], 0)),
        snapshot(2, ([0, 2, 1, 1], 0), continues=((0, 1, -1),)),
        snapshot(3, ([0, 3, 1, 1], 0), clusters=4, continues=((0, 1, 2, -1),)),
    ]
    assert numbers(*history) == [[[0, 1, 4]], [[0, 1, 2]], [[0, 1, 2, 3]]]


@pytest.mark.parametrize(
    ("continues", "clusters", "expected"),
    [
        ([(0, 2, -1)], [3, 3], [[[0, 3, 1]], [[0, 1, 2]]]),
        ([(0, 1), (0, 1, -1)], [3, 2, 3], [[[0, 1, 3]], [[0, 1]], [[0, 1, 2]]]),
    ],
)
def test_the_number_of_a_cluster_that_is_gone_is_not_used_again(continues, clusters, expected):
    history = [
        snapshot(round, ([0, 1, 1, 0], 0), clusters=count, continues=(kept,) if kept else ())
        for round, (count, kept) in enumerate(zip(clusters, [(), *continues], strict=True), 1)
    ]
    assert numbers(*history) == expected


def test_a_cluster_keeps_its_number_where_the_last_lead_descends_from_a_sibling():
    history = [
        snapshot(1, ([0, 1, 2, 2], 0)),
        snapshot(2, ([0, 0, 1, 1], 0), ([0, 1, 1, 1], 0), clusters=2, continues=((0, 2), (0, 1))),
        snapshot(3, ([0, 1, 1, 1], 1), clusters=2),
    ]
    assert numbers(*history) == [[[0, 1, 2]], [[0, 2], [0, 1]], [[0, 1]]]


def test_siblings_without_a_common_cluster_left_are_not_matched_by_clients():
    labels = ([0, 0, 1, 1], 0)
    history = [
        snapshot(1, labels, clusters=2),
        snapshot(2, labels, labels, clusters=2, continues=((0, -1), (-1, 1))),
        snapshot(3, labels, clusters=2),
        snapshot(4, labels, clusters=2),
    ]
    assert numbers(*history)[:2] == [[[0, 2]], [[0, 1], [3, 2]]]


def test_new_clusters_of_alternatives_of_a_round_differ():
    labels = ([0, 0, 1, 1], 0)
    split = ((), (0, -1), (-1, 1))
    history = [
        snapshot(1, labels, clusters=2),
        snapshot(2, labels, labels, labels, clusters=2, continues=split),
    ]
    assert numbers(*history)[1] == [[0, 1], [0, 2], [3, 1]]


def random_history(random, rounds):
    """Of up to three hypotheses and two proposals, which drop, open and reorder clusters."""
    history, counts = [], [int(random.integers(1, 6))] * 3
    for round in range(1, rounds + 1):
        kept = int(random.integers(1, 4))
        rows, parents, continues = [], [], []
        for _ in range(kept + int(random.integers(0, 3))):
            parent = int(random.integers(len(counts)))
            count = max(1, counts[parent] + int(random.integers(-2, 3)))
            sources = [*random.permutation(counts[parent]).tolist(), *[-1] * count][:count]
            gone = random.random(count) < 0.2
            told = tuple(-1 if new else k for new, k in zip(gone, sources, strict=True))
            continues.append(told if random.random() < 0.6 else ())
            rows.append(association(random.integers(-1, count, 7), count))
            parents.append(parent)
        history.append(
            Snapshot(
                round=round,
                log_weights=np.log(np.full(kept, 1 / kept)),
                associations=tuple(rows[:kept]),
                parents=tuple((parent,) for parent in parents[:kept]),
                log_captured_mass=0.0,
                proposals=tuple(
                    Proposed(a, parent, "split")
                    for a, parent in zip(rows[kept:], parents[kept:], strict=True)
                ),
                continues=tuple(continues),
            )
        )
        counts = [row.num_clusters for row in rows]
    return history


def test_clusters_that_go_on_along_the_lead_keep_their_numbers_and_new_ones_get_others():
    random = np.random.default_rng(1)
    checked = 0
    for _ in range(100):
        history = random_history(random, 11)
        leading = [rows[0].tolist() for rows in cluster_numbers(history)]
        for before, after, found in zip(leading, leading[1:], history[1:], strict=False):
            sources = found.continues[0]
            if found.parents[0][0] == 0 and sources:
                shown = [None if k < 0 else before[k] for k in sources]
                new = {number for number, k in zip(after, shown, strict=True) if k is None}
                assert all(k in (None, n) for n, k in zip(after, shown, strict=True))
                assert not new & set(before)
                checked += len(sources)
    assert checked > 100


def test_clusters_that_change_their_index_are_followed():
    history = [
        snapshot(1, ([0, 1, 1, 2], 0)),
        snapshot(2, ([2, 0, 0, 1], 0), continues=((1, 2, 0),)),
        snapshot(3, ([0, 0, 1, 1], 0)),
    ]
    assert numbers(*history) == [[[2, 0, 1]], [[0, 1, 2]], [[0, 1, 2]]]


def test_numbers_of_a_hypothesis_differ_from_each_other():
    random = np.random.default_rng(4)
    history, counts = [], (4,)
    for round in range(1, 30):
        before, counts = counts, tuple(int(k) for k in random.integers(1, 6, 3))
        rows = [
            (random.integers(0, k, 8).tolist(), int(random.integers(0, len(before))))
            for k in counts
        ]
        history.append(snapshot(round, *rows, clusters=counts))
    for found, known in zip(history, numbers(*history), strict=True):
        for association, row in zip(found.associations, known, strict=True):
            assert len(set(row)) == association.num_clusters == len(row)
    assert numbers(*history)[-1][0] == list(range(counts[0]))


def test_clients_without_a_cluster_have_no_number():
    assert renumbered(np.array([1, -1, 0]), np.array([4, 2])).tolist() == [2, -1, 4]


def test_no_rounds_have_no_numbers():
    assert cluster_numbers([]) == []
    with pytest.raises(ValueError, match=r"history must hold at least one round, got none"):
        LeadingClusters.of([])
