"""Pictures read back as SVG: as many nodes and edges as in the files, where they belong."""

import json
import re
from math import dist, hypot
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from bcfl.drawing import client_graph, style
from bcfl.drawing import cluster_sizes as clusters
from bcfl.drawing.client_graph import ClientGraph, evenly
from experiments.reports.pictures import cost, curves, drawing
from experiments.reports.round_history import edges
from experiments.runs.run_folder import RunFolder, read_client_graph


def parsed(draw):
    svg = drawing.inline_svg(draw, "picture", "a < b")
    return ElementTree.fromstring(svg.replace("xlink:href", "href"))


def parts(root, start):
    return {e.get("id"): e for e in root.iter("g") if e.get("id", "").startswith(start)}


def graph_picture(run):
    picture = client_graph.GraphPicture.of(RunFolder.read(run).graphs(client_graph.MOST_CLIENTS))
    return picture, parsed(lambda: client_graph.draw_client_graphs(picture))


def positions(root, method):
    """Group and place of every marker in a method's panel."""
    found = []
    for name, element in parts(root, f"picture-clients-{method}-group-").items():
        group = name.rsplit("-", 1)[1]
        found += [(group, float(u.get("x")), float(u.get("y"))) for u in element.iter("use")]
    return np.array([(int(g), x, y) for g, x, y in found])


def num_lines(root, method):
    outlines = [
        path.get("d")
        for element in parts(root, f"picture-edges-{method}-").values()
        for path in element.iter("path")
    ]
    return sum(outline.count("M") for outline in outlines)


def test_all_clients_and_probable_edges_are_drawn_in_each_panel(make_run):
    folder = make_run(methods=("fedavg", "ifca", "bcfl-g"))
    picture, root = graph_picture(folder)
    assert picture.num_clients == 12
    for method in ("fedavg", "ifca", "bcfl-g"):
        graph = nx.read_graphml(folder / method / "seed-0" / "graph.graphml")
        drawn = positions(root, method)
        assert sorted(drawn[:, 0]) == sorted(group for _, group in graph.nodes(data="group"))
        strong = [p for _, _, p in graph.edges(data="probability") if p >= 0.05]
        assert num_lines(root, method) == len(strong) < graph.number_of_edges()


def test_panels_share_one_layout(make_run):
    _, root = graph_picture(make_run(methods=("fedavg", "ifca", "bcfl-g")))
    first = positions(root, "fedavg")
    for method in ("ifca", "bcfl-g"):
        moved = positions(root, method) - first
        assert np.ptp(moved, axis=0) == pytest.approx(0, abs=1e-3)
        assert hypot(*moved[0, 1:]) > 50


def test_wider_edges_are_more_probable():
    shares = (0.1, 0.5, 1.0)
    widths = [client_graph.edge_width(p, 40) for p in shares]
    assert widths == sorted(widths)
    colours = [client_graph.edge_colour(p, 40) for p in shares]
    assert colours == sorted(colours, reverse=True), "darker"
    assert edges(40)[-1] == (round(widths[-1], 3), round(client_graph.edge_opacity(1.0, 40), 4))


def luminance(colour):
    parts = [part / 255 for part in colour]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return np.dot((0.2126, 0.7152, 0.0722), linear)


@pytest.mark.parametrize(
    ("edge", "paper"),
    [((0x29, 0x3D, 0x5C), (0xFF, 0xFF, 0xFF)), ((0xA9, 0xC3, 0xE8), (0x14, 0x17, 0x1A))],
)
def test_improbable_edges_of_few_clients_are_seen_on_light_and_dark_pages(edge, paper):
    least = client_graph.LEAST_PROBABILITY
    opacity = client_graph.edge_opacity(least, 40)
    mixed = [opacity * e + (1 - opacity) * p for e, p in zip(edge, paper, strict=True)]
    dark, light = sorted(map(luminance, (mixed, paper)))
    assert (light + 0.05) / (dark + 0.05) >= 3, "contrast of WCAG 1.4.11"
    assert client_graph.edge_width(least, 40) >= 0.6
    assert client_graph.edge_opacity(least, 100) < opacity, "edges of many hide markers"


def test_edges_and_their_legend_follow_the_theme_by_one_rule(make_run):
    picture = client_graph.GraphPicture.of(RunFolder.read(make_run()).graphs())
    svg = drawing.inline_svg(lambda: client_graph.draw_client_graphs(picture), "picture", "graph")
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    (legend,) = parts(root, "picture-legend_").values()
    mixed = set(
        re.findall(r"stroke: (color-mix\([^;]*\));", ElementTree.tostring(legend, "unicode"))
    )
    assert len(mixed) == 3, "of 25, 50 and 100 %"
    drawn = parts(root, "picture-edges-").values()
    edges_drawn = "".join(ElementTree.tostring(edge, "unicode") for edge in drawn)
    assert edges_drawn.count("color-mix") == len(list(drawn))
    assert mixed & set(re.findall(r"stroke: (color-mix\([^;]*\))", edges_drawn))


def test_groups_are_apart_and_members_close():
    groups = {f"c{i}": i % 5 for i in range(40)}
    places = client_graph.layout(groups, [])
    assert len({(round(x, 6), round(y, 6)) for x, y in places.values()}) == 40
    assert max(hypot(*place) for place in places.values()) <= 1
    centres = {g: np.mean([places[c] for c in groups if groups[c] == g], axis=0) for g in range(5)}
    for client, place in places.items():
        nearest = min(centres, key=lambda g: dist(centres[g], place))
        assert nearest == groups[client]


def test_members_that_ended_in_one_cluster_are_neighbours():
    groups = dict.fromkeys("abcdef", 0)
    found = ClientGraph(groups, dict(zip("abcdef", [0, 1, 0, 1, 0, 1], strict=True)), {}, 6)
    places = client_graph.layout(groups, [found])
    around = sorted(groups, key=lambda c: np.arctan2(places[c][1], places[c][0]))
    clusters_around = [found.clusters[c] for c in around]
    changes = sum(clusters_around[i] != clusters_around[i - 1] for i in range(6))
    assert changes == 2


def test_without_groups_springs_pull_clients_together(make_run):
    names = [f"c{i}" for i in range(8)]
    edges = {
        (a, b): 1.0 if i // 4 == j // 4 else 0.02
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i < j
    }
    groups = dict.fromkeys(names)
    found = ClientGraph(groups, dict.fromkeys(names, 0), edges, 8)
    places = client_graph.layout(groups, [found])
    assert places == client_graph.layout(groups, [found])
    within = max(dist(places[names[0]], places[n]) for n in names[1:4])
    between = min(dist(places[a], places[b]) for a in names[:4] for b in names[4:])
    assert within < between


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("num_groups", [1, 2, 3, 6])
def test_names_of_methods_are_within_the_figure_whatever_its_panels_are_shaped_like(
    count, num_groups
):
    groups = {f"client-{number}": number % num_groups for number in range(10)}
    graph = ClientGraph(groups, dict.fromkeys(groups, 0), {}, len(groups))
    picture = client_graph.GraphPicture.of({f"m-{number}": graph for number in range(count)})
    with style.in_style():
        figure = client_graph.draw_client_graphs(picture)
        figure.draw_without_rendering()
        tops = [axes.title.get_window_extent().y1 for axes in figure.axes]
    assert max(tops) < figure.bbox.height


def test_clients_without_a_known_group_are_drawn_too(make_run):
    folder = make_run(methods=["ifca"], seeds=[0])
    path = folder / "ifca" / "seed-0" / "graph.graphml"
    graph = nx.read_graphml(path)
    del graph.nodes["client-0003"]["group"]
    nx.write_graphml(graph, path)
    _, root = graph_picture(folder)
    drawn = parts(root, "picture-clients-ifca-group-")
    assert len(list(drawn["picture-clients-ifca-group-unknown"].iter("use"))) == 1
    assert sum(len(list(element.iter("use"))) for element in drawn.values()) == 12


def test_many_clients_are_subsampled_evenly(make_run):
    folder = make_run(methods=["ifca"], seeds=[0], clients=250, groups=5)
    picture, root = graph_picture(folder)
    assert picture.num_clients == 250
    drawn = positions(root, "ifca")
    assert np.unique(drawn[:, 0], return_counts=True)[1].tolist() == [20] * 5
    graph = nx.read_graphml(folder / "ifca" / "seed-0" / "graph.graphml")
    kept = graph.subgraph(picture.groups)
    strong = [p for _, _, p in kept.edges(data="probability") if p >= 0.05]
    assert num_lines(root, "ifca") == len(strong)


def test_client_graph_is_read_as_networkx_reads_it(make_run):
    path = make_run(methods=["ifca"]) / "ifca" / "seed-1" / "graph.graphml"
    found, graph = read_client_graph(path), nx.read_graphml(path)
    assert found.groups == dict(graph.nodes(data="group"))
    assert found.clusters == dict(graph.nodes(data="cluster"))
    assert found.edges == {(a, b): p for a, b, p in graph.edges(data="probability")}


def test_a_graph_without_edges_is_read(tmp_path):
    graph = nx.Graph()
    graph.add_node("only", cluster=0)
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    found = read_client_graph(tmp_path / "graph.graphml", 3)
    assert (found.groups, found.clusters, found.edges) == ({"only": None}, {"only": 0}, {})


def test_evenly_keeps_all_where_there_is_room():
    groups = {"b": 1, "a": 0, "c": None}
    assert list(evenly(groups, 3)) == ["b", "a", "c"]
    assert len(evenly(groups, 2)) == 2


def test_drawing_leaves_global_settings_alone(make_run):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    graph_picture(make_run())
    assert dict(mpl.rcParams) == before


def test_title_of_a_picture_is_text(make_run):
    root = parsed(lambda: clusters.draw_cluster_sizes({"ifca": [[3, 2]]}))
    assert root.find("title").text == "a < b"
    assert root.get("aria-labelledby") == root.find("title").get("id")


@pytest.mark.parametrize("wanted", [[0.5] * 9, [0.0, 0.01, 0.99, 1.0], [1.0, 1.0, 0.98], [0.3], []])
def test_labels_are_spread_in_order(wanted):
    placed = style.spread(wanted, 0.1, 0.0, 1.0)
    ordered = sorted(zip(wanted, placed, strict=True))
    gaps = np.diff([place for _, place in ordered])
    assert (gaps >= 0.1 - 1e-12).all()
    assert all(-1e-12 <= place <= 1 + 1e-12 for place in placed)
    if len(wanted) == 1:
        assert placed == wanted


def test_methods_have_distinct_styles():
    looks = {json.dumps([s["color"], s["linestyle"]]) for s in map(style.line_style, range(28))}
    assert len(looks) == 28


@pytest.mark.parametrize(
    ("values", "lone"),
    [
        ([0.5], [0]),
        ([0.1, 0.2, 0.3], []),
        ([np.nan, 0.2, np.nan, 0.4, 0.5, np.nan, 0.7], [1, 6]),
        ([np.nan], []),
    ],
)
def test_points_to_which_no_line_leads_have_a_marker(values, lone):
    assert curves.lone_points(np.array(values)) == lone


def test_an_axis_is_no_finer_than_the_values_beside_its_lines():
    series = {"bcfl-g": np.array([[-9.0, -2e-5, -1e-5, -1e-5, -1e-5]])}
    panel = curves.Panel(name="mass", title="mass", series=series, zoom=True, least=0.5)
    (axes, _) = curves.draw_curves([panel], list(series)).axes
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(0.54, abs=1e-3)
    assert low < -2e-5 < high


def test_curves_have_a_line_and_a_label_with_the_last_value_per_method():
    series = {f"m-{i}": np.array([[0.1, 0.5, i / 10 - 1e-9]]) for i in range(9)}
    panel = curves.Panel(name="score", title="score, %", series=series)
    root = parsed(lambda: curves.draw_curves([panel], list(series)))
    assert len(parts(root, "picture-score-line-")) == 9
    words = " ".join(element.text or "" for element in root.iter("text"))
    for index in range(9):
        assert re.search(rf"m-{index} +{index / 10:.2f}", words)


def test_mean_over_seeds_ignores_unknown_values():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 4.0, np.nan]])
    assert curves.seed_mean(values) == pytest.approx([2.0, 4.0, np.nan], nan_ok=True)


def test_runs_of_different_lengths_are_one_series(make_run):
    folder = make_run(methods=["ifca"])
    path = folder / "ifca" / "seed-0" / "metrics.jsonl"
    (folder / "summary.json").unlink()  # of finished runs
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    series = RunFolder.read(folder).series("ifca", "accuracy")
    assert np.isnan(series).tolist() == [[False] * 4 + [True] * 2, [False] * 6]


def test_table_of_sizes_takes_rounds_with_more_and_fewer_clusters():
    assert clusters.size_table([[3], [1, 2], []]).tolist() == [[3, 0], [1, 2], [0, 0]]


def test_bands_of_cluster_sizes_are_stacked_to_all_clients():
    rows = [[4, 6], [5, 5], [7, 3]]
    root = parsed(lambda: clusters.draw_cluster_sizes({"ifca": rows}))
    heights = []
    for cluster in range(2):
        outline = parts(root, f"picture-cluster-ifca-{cluster}")
        (path,) = next(iter(outline.values())).iter("path")
        y = [float(v) for v in re.findall(r"[ML] [-\d.]+ ([-\d.]+)", path.get("d"))]
        heights.append((min(y), max(y)))
    (low_top, low_bottom), (high_top, high_bottom) = heights
    whole = low_bottom - high_top
    assert (low_bottom - low_top) / whole == pytest.approx(0.7, abs=0.01)
    assert (high_bottom - high_top) / whole == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(
    ("largest", "unit"),
    [(0.0, (1.0, "bytes")), (999, (1.0, "bytes")), (2e3, (1e3, "kB")), (5e9, (1e9, "GB"))],
)
def test_bytes_have_a_suitable_unit(largest, unit):
    assert cost.unit_of(largest) == unit


def test_bars_are_as_long_as_the_costs():
    one = cost.Cost(
        bytes_down=1e6,
        bytes_up=1e6,
        trainings_requested=100.0,
        trainings_run=50.0,
        seconds={"train": 3.0, "score": 1.0},
    )
    two = cost.Cost(
        bytes_down=2e6,
        bytes_up=1e6,
        trainings_requested=200.0,
        trainings_run=100.0,
        seconds={"train": 6.0, "server": 2.0},
    )
    figure = cost.draw_cost({"one": one, "two": two})
    data, work, time = ([p.get_width() for p in axes.patches] for axes in figure.axes)
    assert data == pytest.approx([1, 2, 1, 1])
    assert work == pytest.approx([100, 200, 50, 100])
    assert time == pytest.approx([3, 6, 1, 0, 0, 2])


def test_what_is_black_follows_the_theme_where_matplotlib_states_no_fill():
    """It leaves out the fill of black shapes: bands of curves, markers."""

    def draw():
        figure = Figure()
        axes = figure.subplots()
        axes.fill_between([0, 1], [0, 1], color="#000000", alpha=0.1, linewidth=0)
        axes.plot([0, 1], color="#000000", marker="o")
        return figure

    svg = drawing.inline_svg(draw, "picture", "black")
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    silent = [e.get("style") for e in root.iter("use") if "fill:" not in e.get("style", "fill:")]
    assert "fill-opacity: 0.1" in silent
    assert root.get("style") == "fill: var(--ink)"
    assert "#000000" not in svg


def test_dark_clusters_are_lighter_on_dark_pages():
    sizes = {"ifca": [[3] * 8]}
    svg = drawing.inline_svg(lambda: clusters.draw_cluster_sizes(sizes), "picture", "sizes")
    mixed = re.findall(r"color-mix\(in srgb, (#\w{6}), (#\w{6}) var\(--dark\)\)", svg)
    drawn = [to_hex(colour) for colour in clusters.cluster_colours(8)]
    assert [colour for colour, _ in mixed] == drawn[:4]
    assert all(contrast(lighter, "#14171a") > 3 for _, lighter in mixed), "WCAG 1.4.11"
    by_contrast = sorted(mixed, key=lambda pair: contrast(pair[1], "#14171a"))
    assert by_contrast == mixed, "still from dark to light"
    assert all(contrast(lighter, "#fefefe") > 4 for _, lighter in mixed), "of words on them"


def contrast(one, other):
    shares = [np.array([int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for c in (one, other)]
    linear = [np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4) for s in shares]
    low, high = sorted(float(v @ [0.2126, 0.7152, 0.0722]) for v in linear)
    return (high + 0.05) / (low + 0.05)


def test_a_label_is_led_to_from_where_its_line_ends():
    series = {"A/ifca": np.array([[0.1, 0.3]]), "B/ifca": np.linspace(0, 1, 9)[None]}
    panel = curves.Panel(name="score", title="score", series=series)
    (axes, _) = curves.draw_curves([panel], list(series)).axes
    starts = [
        (line.get_transform() - axes.transData).transform(line.get_xydata()[0]).tolist()
        for line in axes.lines
        if line.get_color() == style.FAINT
    ]
    assert starts == [pytest.approx([2, 0.3]), pytest.approx([9, 1])]
