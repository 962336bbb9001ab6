"""Colours and lines stay distinct as people with colour vision deficiencies see them.

Machado, Oliveira, Fernandes (2009), "A physiologically-based model for simulation of color vision
deficiency": matrices of severity 1 on linear sRGB. Distances are those of CIE L*a*b*, of which
about 2.3 is just noticeable.
"""

from itertools import combinations, product

import numpy as np
import pytest

from bcfl.drawing import style
from bcfl.drawing.groups import MARKERS

VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
CLEARLY = 10.0


def seen(colour, vision):
    """L*, a* and b* of a colour in hexadecimal."""
    rgb = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(VISION[vision]) @ linear, 0, 1) / WHITE
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, vision):
    return np.linalg.norm(seen(one, vision) - seen(other, vision))


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("palette", ["COLOURS", "GROUP_COLOURS", "LINEAGE_COLOURS", "SHARES"])
def test_colours_of_a_palette_are_distinct(palette, vision):
    pairs = combinations(getattr(style, palette), 2)
    assert min(distance(one, other, vision) for one, other in pairs) > CLEARLY


def test_first_groups_do_not_look_like_methods():
    pairs = product(style.GROUP_COLOURS[:6], style.COLOURS)
    assert min(distance(one, other, "normal") for one, other in pairs) > 2 * CLEARLY


def test_no_two_of_56_lines_look_alike_and_neighbours_differ_in_dashes_and_colour():
    lines = [style.line_style(index) for index in range(56)]
    looks = {(line["color"], line["linestyle"]) for line in lines}
    assert len(looks) == len(lines)
    for one, other in combinations(lines[: len(style.DASHES)], 2):
        assert one["linestyle"] != other["linestyle"]


def test_groups_of_one_colour_differ_in_shape():
    places = [(i % len(MARKERS), i % len(style.GROUP_COLOURS)) for i in range(14)]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("name", "letters", "lines"),
    [
        ("bcfl-g@temperature=4", 20, ["bcfl-g@temperature=4"]),
        ("bcfl-g@temperature=4", 19, ["bcfl-g@", "temperature=4"]),
        ("bcfl-g@temperature=4", 10, ["bcfl-g@", "temperature=", "4"]),
        ("fedavg", 3, ["fedavg"]),
    ],
)
def test_long_names_break_after_signs(name, letters, lines):
    assert style.wrapped(name, letters).split("\n") == lines
