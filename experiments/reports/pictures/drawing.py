"""Export of figures to inline SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bcfl.drawing import in_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure of a page with its caption.

    Attributes:
        svg: the figure as an SVG element, or empty where the caption is all there is.
        caption: how to read the figure.
    """

    svg: str
    caption: str

    @classmethod
    def of(cls, draw: Callable[[], Figure], name: str, title: str, caption: str) -> Picture:
        """Draw a figure as inline SVG.

        Args:
            draw: makes the figure.
            name: prefix of all ids in the element.
            title: text alternative for screen readers.
            caption: how to read the figure.
        """
        return cls(inline_svg(draw, name, title), caption)


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
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif")
    heading = f'<svg role="img" aria-labelledby="{name}-title" '
    return text.replace("<svg ", heading, 1).replace(
        ">", f'>\n <title id="{name}-title">{_escaped(title)}</title>', 1
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
