"""Sizes of clusters: labels apart, whole clients, labels of axes row by row."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from bcfl.drawing import bottom_panels, cluster_colours, draw_cluster_sizes, in_style


@pytest.mark.parametrize(
    "last",
    [[3, 2, 2, 1, 1, 1], [1] * 7, [40, 0, 1, 1, 1], [10]],
    ids=["some", "all", "small", "one"],
)
@pytest.mark.parametrize("columns", [3, 1])
def test_labels_of_small_clusters_do_not_touch(last, columns):
    rows = {"a": [[sum(last)], last], "b": [last]}
    with in_style():
        figure = draw_cluster_sizes(rows, columns=columns)
        figure.draw_without_rendering()
    for axes in figure.axes:
        assert [text.get_text() for text in axes.texts] == [
            f"{cluster}: {size}" for cluster, size in enumerate(last) if size
        ]
        boxes = [text.get_window_extent() for text in axes.texts]
        assert all(one.y1 <= other.y0 + 2 for one, other in pairwise(boxes))


def test_names_of_methods_are_bold_and_stay_in_their_panel():
    name = "bcfl-mht-8@num_clusters=4,learning_rate=0.05"
    with in_style():
        figure = draw_cluster_sizes({key: [[3, 2]] for key in (name, "b", "c")})
        figure.draw_without_rendering()
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[0].replace("\n", "") == name
    boxes = [axes._left_title.get_window_extent() for axes in figure.axes]
    assert boxes[0].x1 < boxes[1].x0
    assert {axes._left_title.get_fontweight() for axes in figure.axes} == {"bold"}


def test_ticks_are_whole_clients():
    with in_style():
        figure = draw_cluster_sizes({"a": [[3, 2, 2, 1, 1, 1]]})
        figure.draw_without_rendering()
    (axes,) = figure.axes
    assert all(float(tick).is_integer() for tick in axes.get_yticks())


@pytest.mark.parametrize(
    ("count", "labelled"), [(3, [0, 1, 2]), (6, [3, 4, 5]), (4, [0, 1, 2, 3]), (8, [3, 4, 5, 6, 7])]
)
def test_a_row_has_labels_below_all_of_its_panels_or_none(count, labelled):
    places = [Figure().add_subplot() for _ in range(count)]
    assert bottom_panels(places, 3) == [places[index] for index in labelled]
    figure = draw_cluster_sizes({str(index): [[1]] for index in range(count)})
    shown = [index for index in range(count) if figure.axes[index].get_xlabel()]
    assert shown == labelled


def test_given_axes_are_all_labelled():
    given = list(np.ravel(Figure().subplots(2, 3)))
    draw_cluster_sizes({str(index): [[1]] for index in range(6)}, given)
    assert {(axes.get_xlabel(), axes.get_ylabel()) for axes in given} == {("round", "clients")}


def test_the_first_of_many_clusters_differ_in_colour_as_those_of_few_do():
    def least_step(colours):
        light = np.sort(colours[:, :3].mean(axis=1))
        return np.diff(light).min()

    few, many = cluster_colours(8), cluster_colours(100)
    assert (np.diff(few[:, :3].mean(axis=1)) > 0).all()
    assert least_step(many[:8]) > 0.6 * least_step(few)
    assert len({tuple(colour) for colour in many.tolist()}) == 100


@pytest.mark.parametrize("count", [0, 1, 8, 9, 300])
def test_each_cluster_has_a_colour(count):
    assert cluster_colours(count).shape == (max(2, count), 4)
