"""Colours and dashes of methods: distinct on a page, and the same on all pages where possible."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from bcfl.drawing import COLOURS, DASHES, line_style
from bcfl.methods import RECIPES

FIRST = ("fedavg", "ifca", "wecfl", "bcfl-g", "bcfl-mh", "bcfl-mht", "default")
"""Methods that are often compared: each has a colour and dashes of its own."""
RUN = re.compile(r"([A-Z]\d*)/(.+)")
"""Name of a method of one of several runs: the letter of the run, and the method."""


def method_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, dashes and width of the line of each method of a page.

    A registered method has a colour of its own, which another method of the page may have taken:
    then it has one of those used least. The same method in several runs has one colour, and dashes
    tell the runs apart. No two of 56 lines are alike.

    Args:
        names: of the methods of a page; of several runs, `RUN/METHOD` as in `lettered`.

    Returns:
        By name, options of `Axes.plot`.
    """
    split = {name: _split(name) for name in names}
    runs = list(dict.fromkeys(run for run, _ in split.values()))
    colours = _colours(dict.fromkeys(method for _, method in split.values()))
    taken: Counter[tuple[int, int]] = Counter()
    used: Counter[int] = Counter()
    styles = {}
    for name, (run, method) in sorted(split.items(), key=lambda item: _order(item[1][1])):
        colour = colours[method]
        wanted = runs.index(run) if len(runs) > 1 else _place(method)
        balance = used if len(runs) == 1 else Counter[int]()
        dash = min(
            range(len(DASHES)),
            key=lambda dash: (taken[colour, dash], balance[dash], (dash - wanted) % len(DASHES)),
        )
        taken[colour, dash] += 1
        used[dash] += 1
        styles[name] = {**line_style(0), "color": COLOURS[colour], "linestyle": DASHES[dash]}
    return {name: styles[name] for name in names}


def has_style_of_run(names: Sequence[str]) -> bool:
    """Whether each method of several runs has its own colour, and each run its own dashes.

    Args:
        names: as in `method_styles`.
    """
    split = [_split(name) for name in names]
    runs, methods = {run for run, _ in split}, {method for _, method in split}
    return len(runs) > 1 and len(runs) <= len(DASHES) and len(methods) <= len(COLOURS)


def _split(name: str) -> tuple[str, str]:
    """Letter of the run, empty where there is one, and method."""
    found = RUN.fullmatch(name)
    return (found[1], found[2]) if found else ("", name)


def _colours(methods: Sequence[str] | dict[str, None]) -> dict[str, int]:
    """Index of the colour of each method: its own where it is free, else one used least."""
    colours: dict[str, int] = {}
    ordered = sorted(methods, key=_order)
    for method in ordered:
        own = _place(method) % len(COLOURS)
        if own not in colours.values():
            colours[method] = own
    used = Counter(colours.values())
    for method in (method for method in ordered if method not in colours):
        own = _place(method)
        colours[method] = min(
            range(len(COLOURS)), key=lambda colour: (used[colour], (colour - own) % len(COLOURS))
        )
        used[colours[method]] += 1
    return colours


def _order(method: str) -> tuple[int, int, str]:
    """Registered methods before others, and those without suffixes before those with."""
    return _place(method), len(method), method


def _place(method: str) -> int:
    """Place of the registered method in a fixed order; of others, one drawn from the name."""
    known = [*FIRST, *(name for name in RECIPES if name not in FIRST)]
    begun = [name for name in known if re.match(rf"{re.escape(name)}(?![a-z0-9])", method)]
    if begun:
        return known.index(max(begun, key=len))
    return len(known) + crc32(method.encode()) % (len(COLOURS) * len(DASHES))
