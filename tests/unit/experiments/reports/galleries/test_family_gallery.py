"""Pictures of OCFL and FAACL read back as SVG: what is drawn is what the files say."""

from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from experiments.reports.galleries.family_gallery import family_pictures
from experiments.reports.pictures import curves, drawing, segments, support, temperature
from experiments.reports.run_warnings import warnings
from experiments.runs.run_folder import NoRunError, RunFolder


def parsed(draw):
    svg = drawing.inline_svg(draw, "picture", "title")
    return ElementTree.fromstring(svg.replace("xlink:href", "href"))


def parts(root, start):
    return {e.get("id"): e for e in root.iter("g") if e.get("id", "").startswith(start)}


def texts(root):
    return [e.text for e in root.iter("text")]


def support_graph(members, supports):
    graph = nx.DiGraph(kind="support")
    for cluster, clients in members.items():
        graph.add_node(cluster, kind="cluster", size=len(clients))
        for client, group in clients.items():
            graph.add_node(client, kind="client", **({} if group is None else {"group": group}))
            graph.add_edge(client, cluster, kind="member")
    for (supporter, supported), p_value in supports.items():
        graph.add_edge(supporter, supported, kind="support", p_value=p_value)
    return graph


@pytest.fixture
def asymmetric():
    members = {
        "cluster 0": {"a": 0, "b": 0, "c": 1},
        "cluster 1": {"d": 1},
        "cluster 2": {},
    }
    return support_graph(
        members, {("cluster 0", "cluster 1"): 0.04, ("cluster 0", "cluster 2"): 0.01}
    )


def test_one_arrow_for_each_support_between_clusters_that_have_devices(asymmetric):
    picture = support.SupportPicture.of(asymmetric)
    assert picture.members == {"cluster 0": {0: 2, 1: 1}, "cluster 1": {1: 1}}
    assert picture.supports == {("cluster 0", "cluster 1"): 0.04}
    root = parsed(lambda: support.draw_supports({"faacl": picture}))
    assert list(parts(root, "picture-support-")) == ["picture-support-faacl-cluster-0-cluster-1"]
    assert {"3", "1", "p = .040", "true group 0", "true group 1"} <= set(texts(root))


def test_a_group_may_be_negative():
    picture = support.SupportPicture.of(support_graph({"cluster 0": {"a": -1, "b": None}}, {}))
    assert picture.members == {"cluster 0": {-1: 1, None: 1}}
    assert "true group -1" in texts(parsed(lambda: support.draw_supports({"faacl": picture})))


def test_many_arrows_have_no_p_values():
    names = [f"cluster {i}" for i in range(5)]
    members = {name: {f"client of {name}": None} for name in names}
    supports = {(a, b): 0.05 for a in names for b in names if a != b}
    picture = support.SupportPicture.of(support_graph(members, supports))
    assert (picture.groups, len(picture.supports)) == ([], 20)
    root = parsed(lambda: support.draw_supports({"faacl": picture}))
    assert len(parts(root, "picture-support-")) == 20
    assert not [text for text in texts(root) if text.startswith(("p =", "true"))]


def test_clusters_of_one_group_are_neighbours():
    groups = {"w": 0, "x": 1, "y": 0, "z": 1}
    picture = support.SupportPicture.of(
        support_graph({n: {n + "1": g} for n, g in groups.items()}, {})
    )
    places = support.layout(picture)
    beside, across = (np.hypot(*np.subtract(places["w"], places[n])) for n in ("y", "x"))
    assert beside <= across + 1e-12
    assert np.hypot(*np.array(list(places.values())).T) == pytest.approx([1] * 4)
    alone = support.SupportPicture.of(support_graph({"w": {"a": 0}}, {}))
    assert support.layout(alone) == {"w": (0.0, 0.0)}


def test_text_of_p_values():
    assert [support.p_value_text(p) for p in (0.0999, 0.0625, 1e-9)] == [
        "p = .100",
        "p = .062",
        "p < .001",
    ]


def test_temperatures_end_where_they_are_unknown():
    nan = float("nan")
    one = np.array([[0.5, 0.4, 0.45, nan], [0.5, 0.42, nan, nan]])
    series = {"ocfl-hdbscan": one, "ocfl-kmeans": one.copy(), "bcl": np.full((1, 4), 0.3)}
    assert temperature.alike(series) == [("ocfl-hdbscan", "ocfl-kmeans"), ("bcl",)]
    root = parsed(lambda: temperature.draw_temperature(series, ["fedavg", *series]))
    assert set(parts(root, "picture-temperature-line-")) == {
        "picture-temperature-line-ocfl-hdbscan",
        "picture-temperature-line-bcl",
    }
    assert {"ocfl-hdbscan, -kmeans", "bcl"} <= set(texts(root))


def test_points_of_temperatures_are_the_last_values_of_seeds():
    nan = float("nan")
    series = {"bcl": np.array([[0.5, 0.4, 0.45, nan], [0.5, 0.42, nan, nan]])}
    panel = curves.Panel(name="t", title="t", series=series, points=True)
    for draw in (
        lambda: temperature.draw_temperature(series, ["bcl"]),
        lambda: curves.draw_narrow_curves([panel], ["bcl"]),
    ):
        lines = draw().axes[0].lines
        points = [line.get_xydata()[0].tolist() for line in lines if line.get_marker() == "o"]
        assert [point for point in points if point[0] > 1] == [[3, 0.45], [2, 0.42]]


def test_names_with_a_common_stem_are_shortened():
    assert temperature.shortened(["bcl", "scl"]) == "bcl, scl"
    assert temperature.shortened(["ocfl-affinity", "bcl", "ocfl-kmeans"]) == (
        "ocfl-affinity, bcl, -kmeans"
    )


def test_segments_are_labelled_with_the_gap():
    root = parsed(lambda: segments.draw_segments({"fedavg": (0.6, 0.58), "scl": (0.8, 0.95)}))
    assert set(parts(root, "picture-segment-")) == {
        "picture-segment-fedavg",
        "picture-segment-scl",
    }
    assert {"gap 2.0", "gap 15.0"} <= set(texts(root))


def test_only_runs_with_the_data_show_a_figure(make_run, asymmetric):
    plain = RunFolder.read(make_run())
    assert set(family_pictures(plain).values()) == {None}
    measures = ("objective_c", "objective_f", "clusterability", "step_size_bound")
    facts = {"clustering_temperature": 0.4, **dict.fromkeys(measures, 0.1)}
    folder = make_run(facts=facts, hold_out_f1=0.3)
    nx.write_graphml(asymmetric, folder / "bcfl-g" / "seed-0" / "support.graphml")
    shown = family_pictures(RunFolder.read(folder))
    assert all(picture and picture.svg for picture in shown.values())
    assert "fedavg" not in shown["support"].svg
    assert "fedavg, bcfl-g" in shown["temperature"].svg


@pytest.mark.parametrize(
    ("methods", "look"),
    [
        (["fedavg", "bcfl-g"], "Look for rises of the temperature"),
        (["ocfl-kmeans", "bcl"], "it starts the clustering of ocfl-kmeans. "),
        (["ocfl-kmeans[shot_round=2]"], "Look for rises of the temperature"),
    ],
)
def test_a_rise_of_the_temperature_triggers_what_waits_for_it(methods, look, make_run):
    folder = make_run(methods=methods, facts={"clustering_temperature": 0.4})
    caption = family_pictures(RunFolder.read(folder))["temperature"].caption
    assert look in caption
    assert "OCFL" not in caption


def test_a_damaged_graph_is_named(make_run):
    folder = make_run()
    (folder / "bcfl-g" / "seed-0" / "support.graphml").write_text("<graphml")
    with pytest.raises(NoRunError, match=r"support\.graphml' is not a GraphML file"):
        family_pictures(RunFolder.read(folder))


def test_devices_that_cannot_test_support_are_counted(make_run):
    def said(number):
        run = make_run(methods=["faacl"], facts={"devices_with_too_few_pairs": number})
        return warnings(RunFolder.read(run), {})

    (sentence,) = said(3.0)
    assert sentence.startswith("Devices with too few samples for the support test")
    assert "maximum per round: 3 (faacl)" in sentence
    assert said(0.0) == []
