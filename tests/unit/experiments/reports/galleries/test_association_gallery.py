"""Captions of the figures of uncertain associations."""

import re
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from bcfl.analysis import pairs
from bcfl.drawing import ClientGraph, GraphPicture, Memberships, cluster_colours
from experiments.reports.galleries.association_gallery import association_pictures
from experiments.reports.galleries.gallery import _client_tips
from experiments.reports.pictures.trust_tips import pair_tips


def run_with(rows, elsewhere=MappingProxyType({})):
    """A run of one method and seed 3 with these memberships."""
    return SimpleNamespace(
        memberships=lambda: {"ifca": rows},
        methods=(),
        seed_shown=lambda methods: "seed 3",
        uncertain_with_other_seeds=lambda methods: elsewhere if methods else {},
    )


@pytest.mark.parametrize(
    ("groups", "look"),
    [({"c0": 0}, "several clients of one true group:"), ({}, "several clients:")],
)
def test_captions_speak_of_true_groups_only_where_they_are_known(groups, look):
    rows = Memberships(("c0", "c1"), np.full((2, 2), 0.5), groups)
    run = run_with(rows)
    caption = association_pictures(run)["uncertainty"].caption
    assert f"Look for clusters that share {look}" in caption


def test_clusters_have_the_colours_of_the_figure_of_all_rounds():
    rows = Memberships(("c0", "c1"), np.full((2, 2), 0.5), {})
    run = run_with(rows)
    picture = association_pictures(run, {"ifca": 5})["uncertainty"]
    for cluster in range(2):
        assert to_hex(cluster_colours(5)[cluster]) in picture.svg
    assert to_hex(cluster_colours(2)[1]) not in picture.svg


def test_the_seed_of_uncertain_clients_is_told_and_others_that_have_some():
    unsure = Memberships(("c0", "c1"), np.full((2, 2), 0.5), {})
    elsewhere = {"ifca": {1: 1, 2: 4}}
    caption = association_pictures(run_with(unsure, elsewhere))["uncertainty"].caption
    assert "after the last round (seed 3), with" in caption
    assert "other seeds" not in caption
    sure = Memberships(("c0", "c1"), np.eye(2), {})
    picture = association_pictures(run_with(sure, elsewhere))["uncertainty"]
    assert (picture.svg, picture.caption) == (
        "",
        "No client is uncertain (seed 3): the association of each has an entropy below 0.056 nats, "
        "and so one cluster more than 99 %. With other seeds some are: 1 client of ifca with seed "
        "1, 4 clients of ifca with seed 2.",
    )


def test_who_is_uncertain_is_defined_by_the_entropy_that_decides_it():
    spread = np.array([[0.99004, *[0.00996 / 9] * 9], [0.5, 0.5, *[0] * 8]])
    rows = Memberships(("c1", "c0"), spread[::-1], {})
    assert rows.num_uncertain == 2, "above 99 % in one cluster, the rest in many others"
    caption = association_pictures(run_with(rows))["uncertainty"].caption
    assert "Uncertain are clients with an entropy of at least 0.056 nats" in caption


def test_a_log_loss_that_rounds_to_nothing_is_told_as_a_bound():
    picture = pairs_of(ifca=PARTED)
    assert "(log loss below 0.01 nats per pair)" in picture.caption


def test_one_pair_is_singular():
    values = np.array([[1.0, 0.5], [0.5, 1.0]])
    bins = pairs.pair_reliability([(values, [0, 0])])
    (tip,) = pair_tips({"ifca": bins}, "group").values()
    assert tip.endswith("\n1 pair")


def pairs_of(groups=(0, 0, 1, 1), **methods):
    """The figure of pairs of methods, each with (clients, clients) probabilities, two groups."""
    run = SimpleNamespace(
        memberships=dict,
        methods=tuple(methods),
        first=lambda method: [],
        co_associations=lambda method, _: [(methods[method], list(groups))],
    )
    return association_pictures(run)["pairs"]


JOINED = np.ones((4, 4))
PARTED = np.kron(np.eye(2), np.ones((2, 2)))


def test_methods_whose_pairs_are_all_right_are_told_in_a_sentence():
    picture = pairs_of(fedavg=JOINED, ifca=PARTED, wecfl=PARTED * 0.94 + 0.03)
    assert "one below 10 %, for ifca, wecfl (log loss at most 0.03 nats" in picture.caption
    for svg in (picture.svg, picture.narrow):
        assert ">fedavg</text>" in svg
        assert ">ifca</text>" not in svg
    alone = pairs_of(ifca=PARTED)
    assert (alone.svg, "for ifca (" in alone.caption) == ("", True)


def test_where_all_pairs_are_of_one_group_there_are_no_points_below_the_diagonal():
    picture = pairs_of((0, 0, 0, 0), fedavg=JOINED, ifca=PARTED)
    assert picture.caption.startswith("All pairs are of one true group, so that all points lie at")
    assert "diagonal" not in picture.caption
    assert "of sharing a cluster, for fedavg (" in picture.caption
    assert pairs_of(ifca=PARTED * 0.5).caption.startswith("Look for points below the diagonal")


def test_scores_of_pairs_stand_above_the_panels():
    picture = pairs_of(fedavg=JOINED, ifca=np.full((4, 4), 0.5))
    assert "fedavg" not in picture.caption
    assert "of one group 33.3% (" in picture.svg
    assert ">log loss 0.69</text>" in picture.svg
    assert ">calibration error 0.17</text>" in picture.svg


def test_bars_are_of_their_client():
    rows = Memberships(("c0", "c1"), np.full((2, 2), 0.5), {})
    run = run_with(rows)
    svg = association_pictures(run)["uncertainty"].svg
    found = re.findall(r'id="uncertainty-membership-ifca-(c.)-." data-client="(c.)"', svg)
    assert found == [("c0", "c0"), ("c1", "c1"), ("c0", "c0"), ("c1", "c1")]


def test_clients_of_graphs_tell_where_another_cluster_is_more_probable_than_theirs():
    graph = ClientGraph({"c0": 0, "c1": 0}, {"c0": 1, "c1": 0}, {("c0", "c1"): 0.5}, 2)
    believed = Memberships(("c0", "c1"), np.array([[0.53, 0.47], [0.5, 0.5]]), {})
    tips = _client_tips(GraphPicture.of({"ifca": graph}), {"ifca": believed})
    assert [text for _, text in tips["clients-ifca-group-0"]] == [
        "c0\nifca: cluster 1 in the leading hypothesis, probability 47.0%\n"
        "most probable by belief: cluster 0, probability 53.0%\ntrue group 0",
        "c1\nifca: cluster 0, probability 50.0%\ntrue group 0",
    ]


def test_clients_of_graphs_tell_how_sure_their_cluster_is():
    clients = {"c0": 0, "c1": 1, "c2": None}
    graph = ClientGraph(clients, {"c0": 1, "c1": 0, "c2": -1}, {("c0", "c1"): 0.5}, 3)
    believed = Memberships(("c1", "c0"), np.array([[0.6, 0.4], [0.03, 0.97]]), {})
    picture = GraphPicture.of({"ifca": graph, "fedavg": graph})
    tips = _client_tips(picture, {"ifca": believed})
    assert [text for _, text in tips["clients-ifca-group-0"]] == [
        "c0\nifca: cluster 1, probability 97.0%\ntrue group 0"
    ]
    found = [text for name in tips for _, text in tips[name]]
    assert found[1:] == [
        "c1\nifca: cluster 0, probability 60.0%\ntrue group 1",
        "c2\nifca: no cluster yet",
        "c0\nfedavg: cluster 1\ntrue group 0",
        "c1\nfedavg: cluster 0\ntrue group 1",
        "c2\nfedavg: no cluster yet",
    ]
