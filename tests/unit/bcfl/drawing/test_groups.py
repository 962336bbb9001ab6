"""Looks of true groups: one for each concept, whatever step or method is drawn."""

from itertools import pairwise

import pytest
from matplotlib.colors import to_hex

from bcfl.drawing import FAINT, ClientGraph, GraphPicture, draw_client_graphs
from bcfl.drawing.groups import Palette, concepts_text, read_concepts
from bcfl.drawing.style import GROUP_COLOURS


def test_a_palette_has_the_groups_of_all_time_steps():
    clients = [{"group": 1, "concepts": "0 - 1"}, {"group": 1, "concepts": "0 3 1"}, {}]
    assert Palette.of_clients(clients) == Palette((0, 1, 3), change=True)
    assert Palette.of_clients([{"group": "4"}, {"group": -1}]) == Palette((-1, 4))


@pytest.mark.parametrize(("concepts", "text"), [((0, None, 1), "0 - 1"), ((12,), "12"), ((), "")])
def test_concepts_are_written_as_they_are_read(concepts, text):
    assert concepts_text(concepts) == text
    assert read_concepts(text) == concepts


def test_palettes_join():
    several = Palette((0, 2)), Palette((1,), change=True)
    assert Palette.union(several) == Palette((0, 1, 2), change=True)
    assert Palette.union([]).including([None, 2, 2]) == Palette((2,))


def test_looks_and_names():
    fixed, stream = Palette((0, 1)), Palette((0, 1), change=True)
    assert (fixed.name(1), stream.name(1)) == ("true group 1", "concept 1")
    assert (fixed.colour(1), fixed.colour(None)) == (GROUP_COLOURS[1], FAINT)
    many = Palette(tuple(range(20)))
    looks = [(many.colour(group), many.marker(group)) for group in many.groups]
    assert len(set(looks)) == 20
    assert all(a != b for a, b in pairwise(looks))


def test_a_concept_has_its_look_where_no_other_is_at_the_last_step():
    graph = ClientGraph({"a": 1, "b": 1}, {"a": 0, "b": 0}, {}, 2, Palette((0, 1), change=True))
    picture = GraphPicture.of({"fedavg": graph})
    figure = draw_client_graphs(picture)
    (markers,) = figure.axes[0].lines
    assert to_hex(markers.get_markerfacecolor()) == GROUP_COLOURS[1].lower()
    assert markers.get_marker() == "s"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[:2] == ["concept 0", "concept 1"]
