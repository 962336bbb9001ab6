"""The frame of every page: one HTML file with its styles and script, which opens offline."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from experiments.reports.terms import better, explained

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

BREAK = re.compile(r"(?<=[/:,@])(?<!^[A-Z]/)|(?<=\.)(?!\d)")
"""Where a name may break between lines: after signs that part it, but not before a value.

Nor after the letter of a run.
"""
WITHIN = {16: re.compile(r"(?<=_)"), 12: re.compile(r"(?<=-)(?=[a-z]{4})")}
"""Where its parts may break, by the number of letters above which they do."""
SCRIPTS = ("page.js", "tips.js", "rounds.js")
"""Parts of the script of a page, in their order."""
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')


def render_page(template: str, title: str, **values: object) -> str:
    """Render a page with its table of contents, styles and script.

    Args:
        template: name of the template of the body.
        title: of the page, shown in the browser's tab.
        **values: what the body shows.

    Returns:
        A complete HTML document that needs no other file.
    """
    from markupsafe import Markup

    environment = _environment()
    body = environment.get_template(template).render(**values)
    return environment.get_template("page.html.jinja").render(
        title=title,
        body=Markup(body),
        sections=[(anchor, Markup(heading)) for anchor, heading in HEADING.findall(body)],
        style=Markup(_text("page.css")),
        script=Markup("\n".join(map(_text, SCRIPTS))),
    )


def as_script_data(value: Any) -> str:  # noqa: ANN401
    """JSON that may stand inside a `<script>` element.

    Args:
        value: what `json` can write.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def breakable(name: object) -> Markup:
    """A name as HTML whose parts may stand on different lines.

    Args:
        name: such as of a method or an option.
    """
    from markupsafe import Markup

    parts = BREAK.split(str(name))
    for most, place in WITHIN.items():
        parts = [
            piece for part in parts for piece in (place.split(part) if len(part) > most else [part])
        ]
    return Markup("<wbr>").join(Markup("<span>{}</span>").format(part) for part in parts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": breakable, "better": better, "explained": explained}
    return environment


def _text(name: str) -> str:
    return files("experiments.reports").joinpath("templates", name).read_text("utf-8")
