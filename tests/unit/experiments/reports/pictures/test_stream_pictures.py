"""Figures of streams: marked time steps, lines in the colours of concepts, tiles of concepts."""

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from bcfl.drawing import FAINT, GROUP_COLOURS
from experiments.reports.pictures import concepts, curves, moves
from experiments.reports.pictures.drawing import inline_svg, with_tips
from experiments.reports.pictures.time_steps import NO_STEPS, Stream, TimeSteps

STEPS = TimeSteps((0, 0, 1, 1, 1, 2))
CONCEPTS = {"a": (1, 0, 0), "b": (0, 0, 1), "c": (0, 0, 0), "d": (1, 0)}


def vertical_lines(axes):
    found = [line.get_xdata() for line in axes.lines]
    return [x[0] for x in found if len(x) == 2 and x[0] == x[1]]


def test_rounds_in_which_a_step_begins_are_marked_in_each_panel():
    series = {"fedavg": np.linspace(0, 1, 6)[None]}
    panels = [curves.Panel(name=name, title=name, series=series) for name in ("one", "two")]
    for draw in (curves.draw_curves, curves.draw_narrow_curves):
        figure = STEPS.marked(lambda draw=draw: draw(panels, ["fedavg"]))()
        assert [vertical_lines(axes) for axes in figure.axes] == [[2.5, 5.5], [2.5, 5.5]]
        plain = NO_STEPS.marked(lambda draw=draw: draw(panels, ["fedavg"]))()
        assert [vertical_lines(axes) for axes in plain.axes] == [[], []]
    assert (STEPS.begins, NO_STEPS.begins, NO_STEPS.caption) == ([3, 6], [], "")
    (unused,) = curves.draw_curves(panels[:1], ["fedavg"]).axes[1:]
    assert not unused.axison


def test_concepts_of_a_round_are_those_of_its_step():
    stream = Stream(CONCEPTS, STEPS)
    assert stream.groups_after(2, "abcd") == [1, 0, 0, 1]
    assert stream.groups_after(5, "abcd") == [0, 0, 0, 0]
    assert stream.groups_after(9, "bde") == [1, 0, None]
    assert len(stream.groups("abcd")) == 6


def test_a_line_has_the_colour_of_its_concept_in_each_round():
    labels = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 1], [1, 1, 1]])
    groups = [[0, 0, None], [0, 1, None], [0, 1, None], [0, 0, None]]
    one = moves.Moves(labels, 2, [0, 0, None], groups)
    (axes,) = moves.draw_moves({"ifca": one}).axes
    first, third = (line for line in axes.lines if line.get_gid())
    assert [first.get_gid(), third.get_gid()] == ["move-ifca-0", "move-ifca-2"]
    assert (first.get_color(), third.get_color()) == (GROUP_COLOURS[0], FAINT)
    (second,) = (c for c in axes.collections if isinstance(c, LineCollection))
    assert second.get_gid() == "move-ifca-1"
    shown = [to_hex(colour) for colour in second.get_colors()]
    assert shown == [GROUP_COLOURS[i].lower() for i in (0, 1, 0)]
    rounds = [piece[:, 0].tolist() for piece in second.get_segments()]
    assert rounds == [[1], [1, 2, 3], [3, 4]]
    tips = moves.move_tips({"ifca": one}, ["a", "b", "c"])
    lines = tips["move-ifca-1"].text.split("\n")
    spans = [(0, 1), (1, 2), (0, 4)]
    assert lines[1:4] == [f"concept {concept} from round {first}" for concept, first in spans]
    assert "concept" not in tips["move-ifca-2"].text


def test_clients_of_like_concepts_stand_beside_each_other():
    assert concepts.order_of(CONCEPTS) == ["c", "b", "d", "a"]
    tiles, circles = concepts.draw_stream(CONCEPTS, dict.fromkeys("abcd", np.array([3, 1]))).axes
    ones = next(c for c in tiles.collections if c.get_gid() == "tiles-concept-1")
    assert ones.get_offsets().tolist() == [[1, 2], [2, 0], [3, 0]]
    assert len(circles.collections[0].get_offsets()) == 8
    (alone,) = concepts.draw_stream(CONCEPTS, None).axes
    assert alone.get_ylabel() == "time step"


def test_numbers_of_two_letters_are_as_high_as_those_of_one():
    (axes,) = concepts.draw_stream({"a": (-1, 1), "b": (1, 1)}, None).axes
    sizes = {c.get_gid(): c.get_sizes()[0] for c in axes.collections}
    # A marker is scaled to its longer side.
    assert sizes["digits-concept--1"] > 3 * sizes["digits-concept-1"]


def test_each_tile_and_circle_has_the_text_of_its_client_and_digits_have_none():
    counts = {name: np.array([number, 1]) for number, name in enumerate("abcd", start=2)}
    tips = concepts.stream_tips(CONCEPTS, counts)
    svg = with_tips(inline_svg(lambda: concepts.draw_stream(CONCEPTS, counts), "p", "t"), "p", tips)
    for text in ("time step 0: concept 1", "time step 1: concept 0", "class 0: 2 samples"):
        assert f'data-client="a" data-tip="a&#10;{text}"' in svg
    assert svg.count('data-tip="b&#10;time step 2: concept 1"') == 1
    assert svg.count("data-tip") == 8 + 11
