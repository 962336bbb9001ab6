"""Clusters of `bcfl explain` are those of the leading hypothesis; other beliefs are told apart."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.commands.explain import _data, _how_sure, _trains_with, _where, overview
from experiments.reports.client_report import ClientReport, Peer

FILTERED = np.array([[0, 1], [0.45, 0.55], [0.6, 0.4], [0.7, 0.3], [0.5, 0.5], [0.53, 0.47]])
REPORT = ClientReport(
    client="client-3",
    group=None,
    concepts="",
    time_step=None,
    num_samples={},
    classes=np.zeros(2, dtype=np.int64),
    labels=np.ones(6, dtype=np.int64),
    probabilities=FILTERED[-1],
    filtered=FILTERED,
    smoothed=FILTERED,
    peers=(),
    scores=(),
    prediction_entropy=0.0,
    association_uncertainty=0.0,
)
AGREEING = replace(REPORT, labels=np.array([1, 1, 0, 0, 0, 0]))


def test_the_cluster_is_that_of_the_leading_hypothesis_where_another_is_more_probable():
    assert REPORT.cluster == 1
    assert REPORT.believed == [1, 1, 0, 0, 1, 0], "of a tie, the cluster of the hypothesis"
    assert _where(REPORT) == [
        "rounds 1-6 in cluster 1",
        "  most probable by belief: rounds 3-4 cluster 0 (up to 70%) · round 6 cluster 0 (53%)",
    ]
    assert "chance of cluster 1 in rounds 1-6" in _how_sure(REPORT, False)[-1]


def test_where_belief_agrees_there_is_one_history():
    assert _where(AGREEING) == ["rounds 1-2 in cluster 1 · rounds 3-6 in cluster 0"]


def test_a_client_that_the_leading_hypothesis_has_not_seen_is_told_by_belief():
    unseen = replace(REPORT, labels=np.full(6, -1))
    assert _where(unseen)[0] == "rounds 1-6 not seen"
    assert "chance of cluster 0 in rounds 1-6" in _how_sure(unseen, False)[-1]


@pytest.mark.parametrize(
    ("report", "row", "others"),
    [
        (REPORT, ["1", "1", "47%"], ["client-3 (cluster 0, 53%)"]),
        (AGREEING, ["0", "3", "53%"], []),
    ],
)
def test_the_table_has_that_cluster_since_when_and_how_probable_it_is(report, row, others):
    _, line, *told = overview([report])
    assert line.split()[2:5] == row
    assert [text.rpartition(" for ")[2] for text in told[:-1]] == others


@pytest.mark.parametrize(("count", "more"), [(5, []), (6, ["  and 1 more"]), (9, ["  and 4 more"])])
def test_a_list_of_other_clients_says_how_many_it_leaves_out(count, more):
    peers = [Peer(client=f"c{n}", group=None, latest=0.9, mean=0.8) for n in range(count)]
    head, _, *shown, _ = _trains_with(replace(REPORT, peers=peers))
    assert head == f"{count} of {count} other clients"
    assert shown[5:] == more


def test_common_classes_are_told_by_their_names_where_they_have_some():
    report = replace(REPORT, num_samples={"train": 8}, classes=np.array([2, 6]))
    assert _data(report) == ["8 train samples of classes 1 (75%), 0 (25%)"]
    named = replace(report, class_names=("daisy", "tulip"))
    assert _data(named) == ["8 train samples of classes tulip (75%), daisy (25%)"]
