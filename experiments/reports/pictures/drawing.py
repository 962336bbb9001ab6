"""Export of figures to inline SVG."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import (
    FAINT,
    FEW_CLIENTS,
    INK,
    LEVELS,
    edge_colour,
    edge_opacity,
    in_style,
    lighter_cluster_colours,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Cells:
    """The texts of a heat map.

    Attributes:
        names: of rows and columns.
        values: (rows, rows) of the cells.
        what: name of the values.
    """

    names: Sequence[str]
    values: NDArray[np.float64]
    what: str

    @property
    def attribute(self) -> str:
        """As an attribute of the image, which the script of the page reads."""
        table = {
            "names": list(self.names),
            "values": [[signed("{:z.2f}", value) for value in row] for row in self.values],
            "what": self.what,
        }
        return f' data-cells="{_quoted(json.dumps(table, separators=(",", ":")))}"'


def signed(form: str, value: float) -> str:
    """A number with a minus sign rather than a hyphen.

    Args:
        form: its format, such as `{:.2f}`.
        value: the number.
    """
    return form.format(value).replace("-", "−")


@dataclass(frozen=True)
class ClientText:
    """The text of a line or bar of a client, which is marked where the client is in all figures.

    Attributes:
        client: its name.
        text: that appears.
    """

    client: str
    text: str

    @property
    def attributes(self) -> str:
        """As attributes of an element, which the script of the page reads."""
        return f' data-client="{_quoted(self.client)}" data-tip="{_quoted(self.text)}"'


Tips = Mapping[str, str | ClientText | Cells | Sequence[tuple[str, str]]]
MARKER = re.compile(r"<(use|path) (?!id=)")
"""A marker: one that was defined before is used, one of a size of its own is a path."""
PLACE = re.compile(r' (?:d|x|y)="[^"]*"')
DIGITS = re.compile(r"(\.\d\d)\d+")
"""Digits of coordinates that are left out: less than a hundredth of a point."""
BAND = re.compile(r"(round|band)-.*-(\d+)")
THEMED = {
    INK: "--ink",
    FAINT: "--faint",
    "#000000": "--ink",
    "#ffffff": "--paper",
    "#e3e3e3": "--grid",
    "#f2f2f2": "--shade",
    "#332288": "--group-0",
    "#117733": "--group-2",
    "#882255": "--group-4",
    "#0072b2": "--method-5",
}
"""Colours that follow the theme of the page, by the name of its variable."""
EDGES = {
    edge_colour(level / LEVELS, clients): f"color-mix(in srgb, var(--edge) "
    f"{edge_opacity(level / LEVELS, clients):.1%}, var(--paper))"
    for clients in (FEW_CLIENTS + 1, FEW_CLIENTS)
    for level in range(1, LEVELS + 1)
}
"""Colours of edges of association graphs, which follow it as well."""
COLOUR = re.compile(r"#[0-9a-f]{6}\b")


@dataclass(frozen=True)
class Picture:
    """A figure of a page with its caption.

    Attributes:
        svg: the figure as an SVG element, or empty where the caption is all there is.
        caption: how to read the figure.
        title: text alternative for screen readers.
        narrow: the same for windows too narrow for the figure, or empty.
    """

    svg: str
    caption: str
    title: str = ""
    narrow: str = ""

    @classmethod
    def of(
        cls,
        draw: Callable[[], Figure],
        name: str,
        title: str,
        caption: str,
        tips: Tips = MappingProxyType({}),
        narrow: Callable[[], Figure] | None = None,
    ) -> Picture:
        """Draw a figure as inline SVG.

        Args:
            draw: makes the figure.
            name: prefix of all ids in the element.
            title: text alternative for screen readers.
            caption: how to read the figure.
            tips: see `with_tips`.
            narrow: makes the same figure for narrow windows.
        """
        drawings = {name: draw, **({f"{name}-narrow": narrow} if narrow else {})}
        svgs = [with_tips(inline_svg(d, n, title), n, tips) for n, d in drawings.items()]
        return cls(svgs[0], caption, title, svgs[1] if narrow else "")


def inline_svg(draw: Callable[[], Figure], name: str, title: str) -> str:
    """Draw a figure as an `<svg>` element of an HTML page; the output is deterministic.

    Args:
        draw: makes the figure.
        name: prefix of all ids in the element, unique within the page.
        title: text alternative for screen readers.
    """
    buffer = io.StringIO()
    with in_style():
        figure = draw()
        _lay_out(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    text = PLACE.sub(lambda place: DIGITS.sub(r"\1", place[0]), text)
    colours = themed_colours()
    text = COLOUR.sub(lambda colour: colours.get(colour[0], colour[0]), text)
    text = text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif")
    # matplotlib states no fill where it is black, so that the one of the whole figure applies
    heading = f'<svg role="img" aria-labelledby="{name}-title" style="fill: var(--ink)" '
    return text.replace("<svg ", heading, 1).replace(
        ">", f'>\n <title id="{name}-title">{_escaped(title)}</title>', 1
    )


@cache
def themed_colours() -> dict[str, str]:
    """What CSS says for each colour that is another one on dark pages."""
    return {
        **{colour: f"var({name})" for colour, name in THEMED.items()},
        **EDGES,
        **{
            colour: f"color-mix(in srgb, {colour}, {lighter} var(--dark))"
            for colour, lighter in lighter_cluster_colours().items()
        },
    }


def _lay_out(figure: Figure) -> None:
    """Place axes and labels once; `savefig` would draw the figure twice to do so."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)  # "none" would leave a placeholder, which draws twice


def with_tips(svg: str, name: str, tips: Tips) -> str:
    """The figure with the texts that appear where the pointer rests.

    Args:
        svg: figure of `inline_svg`.
        name: prefix of all ids in it.
        tips: by id of an element, its text, of a client with its name; for markers, by id of their
            group, client and text of each in the order in which they were drawn; or by id of an
            image, the texts of its cells.
    """

    def group(match: re.Match[str]) -> str:
        head, start, gid = match[0], match[1], match[2]
        tip, band = tips.get(gid), BAND.fullmatch(gid)
        if isinstance(tip, str):
            start += f' data-tip="{_quoted(tip)}"'
        if isinstance(tip, ClientText):
            start += tip.attributes
        if band:
            start += f' data-{band[1]}="{band[2]}"'
        return head if start == match[1] else f"{start}>"

    svg = re.sub(rf'(<g id="{re.escape(name)}-([^"]*)")>', group, svg)
    for gid, texts in tips.items():
        if isinstance(texts, Cells):
            image = f' id="{name}-{gid}"'
            svg = svg.replace(image, f"{image}{texts.attribute}")
        elif not isinstance(texts, str | ClientText):
            svg = _with_markers(svg, f'<g id="{name}-{gid}">', texts)
    return svg


def _with_markers(svg: str, start: str, markers: Sequence[tuple[str, str]]) -> str:
    place = svg.find(start)
    if place < 0:
        return svg
    for client, tip in markers:
        found = MARKER.search(svg, place)
        assert found is not None
        place = found.end()
        text = ClientText(client, tip).attributes[1:] + " "
        svg = svg[:place] + text + svg[place:]
    return svg


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', "&quot;").replace("\n", "&#10;")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
