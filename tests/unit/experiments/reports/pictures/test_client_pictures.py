"""Pictures of clients: what is behind the axes, and where they stand in the report."""

from functools import partial

import numpy as np
import pytest
from matplotlib.colors import to_hex

from bcfl.drawing import FAINT, NARROW, WIDTH, in_style
from experiments import partitions
from experiments.reports.pictures import bubbles, concepts, likeness, moves, neighbours
from experiments.reports.pictures.drawing import inline_svg

# Moves


def lines(axes, start):
    return {x.get_gid(): x for x in axes.get_lines() if (x.get_gid() or "").startswith(start)}


def test_each_client_is_a_line_in_the_band_of_its_cluster():
    labels = np.array([[0, 1, -1], [0, 0, 1], [1, 0, 1]])
    one = moves.Moves(labels, 2, [0, 1, None])
    assert one.moved.tolist() == [[False, True, False], [True, False, False]]
    (axes,) = moves.draw_moves({"ifca": one}).axes
    drawn = lines(axes, "move-ifca-")
    assert len(drawn) == 3
    for client in range(3):
        height = drawn[f"move-ifca-{client}"].get_ydata()
        seen = labels[:, client] >= 0
        assert np.isnan(height[~seen]).all()
        assert np.round(height[seen]).tolist() == labels[seen, client].tolist()
        assert drawn[f"move-ifca-{client}"].get_xdata().tolist() == [1, 2, 3]
    assert axes.get_title(loc="right") == "2 moves, the last in round 3"


def test_clients_of_one_group_are_adjacent_and_never_overlap():
    one = moves.Moves(np.zeros((2, 6), dtype=np.int64), 2, [1, 0, 1, 0, 1, 0])
    heights = one.heights()[0]
    assert len(set(heights)) == 6
    assert max(heights[[1, 3, 5]]) < min(heights[[0, 2, 4]])
    assert one.title() == "no moves"


def test_simultaneous_moves_of_all_clients_are_counted():
    labels = np.array([[0, 0, -1], [1, 1, 1], [0, 0, 0]])
    one = moves.Moves(labels, 2, [None] * 3)
    assert one.title() == "5 moves, the last in round 3"


# Partition


def bubble_counts(figure):
    """By group, (place, class, area) of each circle."""
    return {
        found.get_gid(): np.column_stack([found.get_offsets(), found.get_sizes()])
        for found in figure.axes[0].collections
    }


def test_circles_are_the_samples_ordered_by_group():
    counts = np.array([[4, 0, 2], [0, 8, 0], [1, 0, 0]])
    figure = bubbles.draw_partition(counts, [1, 0, 1])
    drawn = bubble_counts(figure)
    assert set(drawn) == {"bubbles-group-0", "bubbles-group-1"}
    ((place, label, largest),) = drawn["bubbles-group-0"]
    assert (place, label) == (0, 1)
    other = drawn["bubbles-group-1"]
    assert other[:, 0].tolist() == [2, 2, 3]
    assert other[:, 1].tolist() == [0, 2, 0]
    np.testing.assert_allclose(other[:, 2] / largest, [4 / 8, 2 / 8, 1 / 8])
    assert figure.axes[0].get_title(loc="right") == "largest circle: 8 samples"


def test_clients_without_groups_are_drawn_in_their_order():
    figure = bubbles.draw_partition(np.array([[3, 1], [2, 2]]), [None, None])
    assert list(bubble_counts(figure)) == ["bubbles-group-unknown"]
    order, places = bubbles.along([None, 2, 0, 2])
    assert order == [2, 1, 3, 0]
    assert places.tolist() == [0, 2, 3, 5]


def test_groups_have_their_names_below_them_or_below_the_picture():
    counts, groups = np.full((6, 4), 5), [0, 0, 1, 1, 2, 2]
    names = ("mnist", "a domain of a long name", "usps")
    (axes,) = bubbles.draw_partition(counts, groups, names=names).figure.axes
    assert [text.get_text() for text in axes.texts] == [f"{i}: {n}" for i, n in enumerate(names)]
    assert axes.get_xlabel() == "6 clients"
    (axes,) = bubbles.draw_partition(counts, groups, NARROW, names).figure.axes
    assert [text.get_text() for text in axes.texts] == ["group 0", "group 1", "group 2"]
    lines = axes.get_xlabel().split("\n")
    assert lines[0] == "6 clients"
    assert " · ".join(lines[1:]).split(" · ") == [f"group {i}: {n}" for i, n in enumerate(names)]


NAMES = {
    "none": lambda group: None,
    "short": lambda group: "usps",
    "wide": lambda group: "W" * 10,
    "of several words": lambda group: "classes 0 to 4, random labels for the others",
    "longer than a line": lambda group: "an-unbroken-name-" * 12,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [WIDTH, NARROW])
@pytest.mark.parametrize("num_groups", [*range(2, 10), 60])
def test_no_names_overlap_or_are_cut(num_groups, width, name):
    clients = max(24, num_groups)
    groups = [client * num_groups // clients for client in range(clients)]
    names = [made for group in range(num_groups) if (made := NAMES[name](group))]
    with in_style():
        figure = bubbles.draw_partition(np.full((clients, 4), 5), groups, width, names)
        figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == num_groups or {text.get_text() for text in axes.texts} < set(
        map(str, range(num_groups))
    )
    edges = [0, *(edge for box in boxes for edge in (box.x0, box.x1)), figure.bbox.width]
    assert edges == sorted(edges)
    assert axes.get_xlabel().startswith(f"{clients} clients by group") == (
        axes.texts[0].get_text() == "0"
    )
    below = axes.xaxis.label.get_window_extent()
    assert 0 <= below.x0 < below.x1 <= figure.bbox.width
    assert below.y0 >= 0
    shown = " ".join([text.get_text() for text in axes.texts] + axes.get_xlabel().split())
    assert shown.replace(" ", "").count("".join(names[:1]).replace(" ", "")) >= len(names)


def test_clients_without_a_group_have_the_look_of_none():
    figure = bubbles.draw_partition(np.full((3, 2), 5), [0, None, 1], names=("old", "new"))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["0: old", "1: new"]
    colours = {one.get_gid(): to_hex(one.get_facecolor()) for one in axes.collections}
    assert colours["bubbles-group-unknown"] == FAINT
    assert colours["bubbles-group-0"] != colours["bubbles-group-1"] != FAINT


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_names_with_dollars_are_no_formulas(width):
    name = r"x$\frac$"
    counts, groups, steps = np.full((4, 2), 5), [0, 0, 1, 1], {"a": (0, 1), r"b$\x$": (1, 1)}
    for draw in (
        partial(bubbles.draw_partition, counts, groups, width, [name] * 2),
        partial(concepts.draw_stream, steps, dict(zip(steps, counts, strict=False)), width, [name]),
    ):
        assert name in inline_svg(draw, "a", "A figure")


def test_of_many_classes_those_without_samples_have_no_row():
    counts = np.zeros((2, 62), dtype=np.int64)
    counts[:, [3, 40]] = 5
    (axes,) = bubbles.draw_partition(counts, [None, None]).figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["3", "40"]
    assert len(partitions.classes_with_samples(counts[:, :20])) == 20


def test_no_circle_of_two_hundred_clients_is_taller_than_its_row():
    counts = np.full((200, 10), 5)
    figure = bubbles.draw_partition(counts, [client // 20 for client in range(200)])
    sizes = np.concatenate([c.get_sizes() for c in figure.axes[0].collections])
    assert len(sizes) == 2000
    assert np.sqrt(sizes.max()) / 72 < bubbles.ROW


# Likeness


def test_cosines_of_vectors():
    found = likeness.cosines(np.array([[3.0, 0.0], [1.0, 1.0], [-2.0, 0.0], [0.0, 0.0]]))
    half = 2**-0.5
    expected = [[1, half, -1, 0], [half, 1, -half, 0], [-1, -half, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_maps_share_their_shades_and_small_ones_hold_numbers():
    near, far = np.array([[1, 0.99], [0.99, 1]]), np.array([[1, -0.001], [-0.001, 1]])
    figure = likeness.draw_clusters({"wecfl": (near, [0, 1]), "ifca": (far, [1, 3])})
    images = [axes.images[0] for axes in figure.axes[:2]]
    assert {image.get_clim() for image in images} == {(0, 1)}, "whatever the cosines are"
    np.testing.assert_array_equal(images[0].get_array(), near)
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes[:2]]
    assert texts == [["1.00", "0.99", "0.99", "1.00"], ["1.00", "0.00", "0.00", "1.00"]]
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["1", "3"]


@pytest.mark.parametrize(("methods", "clusters"), [(1, 6), (2, 6), (5, 6), (1, 3), (7, 5)])
@pytest.mark.parametrize("columns", [4, 1])
def test_printed_cosines_have_room_in_their_cells(methods, clusters, columns):
    matrix = np.eye(clusters) - 0.01
    maps = {f"method-{i}": (matrix, list(range(clusters))) for i in range(methods)}
    with in_style():
        figure = likeness.draw_clusters(maps, columns)
        figure.draw_without_rendering()
    axes = figure.axes[0]
    cell = axes.images[0].get_window_extent().width / clusters
    assert max(text.get_window_extent().width for text in axes.texts) < cell


def test_numbers_of_many_clusters_are_thinned_out():
    maps = {"wecfl": (np.eye(24), list(range(24)))}
    (axes, _) = likeness.draw_clusters(maps).axes
    assert len(axes.get_xticks()) == len(axes.get_yticks()) <= likeness.TICKS
    assert not axes.texts


def test_clients_are_divided_where_clusters_end():
    matrix = np.eye(5)
    figure = likeness.draw_clients(matrix, 0.5 * matrix + 0.5, [2, 0, 3])
    first = figure.axes[0]
    assert {line.get_ydata()[0] for line in first.get_lines() if line.get_xdata()[0] == 0} == {1.5}
    assert [label.get_text() for label in first.get_xticklabels()] == ["0", "2"]
    assert first.get_xticks().tolist() == [0.5, 3]
    np.testing.assert_array_equal(figure.axes[1].images[0].get_array(), 0.5 * matrix + 0.5)


# Neighbours


@pytest.fixture(scope="module")
def two_blobs():
    points = np.repeat([[0.0], [50.0]], 8, axis=0) + np.arange(16)[:, None] % 8
    return np.abs(points - points.T)


def test_neighbours_stay_neighbours(two_blobs):
    places = neighbours.embed(two_blobs)
    np.testing.assert_array_equal(places, neighbours.embed(two_blobs))
    gaps = np.linalg.norm(places[:, None] - places, axis=2) + 1e9 * np.eye(16)
    assert all((gaps[row].argmin() < 8) == (row < 8) for row in range(16))


def test_colours_are_clusters_and_shapes_groups(two_blobs):
    clusters = np.array([0] * 7 + [1] * 9)
    one = neighbours.Neighbourhood(3, two_blobs, clusters)
    figure = neighbours.draw_neighbours([one], [[0] * 8 + [1] * 8], 2)
    first, second = figure.axes[0].collections
    assert first.get_gid() == "neighbours-3-0"
    assert len(np.unique(first.get_facecolor(), axis=0)) == 2
    assert len(np.unique(second.get_facecolor(), axis=0)) == 1
    assert len(first.get_offsets()) == len(second.get_offsets()) == 8
    assert figure.axes[0].get_title(loc="left") == "round 3"


def test_equal_models_can_be_drawn():
    assert np.isfinite(neighbours.embed(np.zeros((6, 6)))).all()


@pytest.mark.parametrize("clients", [18, bubbles.MOST_NARROW])
def test_circles_of_neighbours_stay_apart_in_narrow_windows(clients):
    groups = [client % 3 for client in range(clients)]
    figure = bubbles.draw_partition(np.full((clients, 4), 9), groups, NARROW)
    (axes,) = figure.axes
    for circles in axes.collections:
        points = axes.transData.transform(circles.get_offsets()) * 72 / figure.dpi
        across = np.unique(points[:, 0].round(6))
        assert np.diff(across).min() >= np.sqrt(circles.get_sizes().max()) - 1e-6
