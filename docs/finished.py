"""Corrections of the pages that Sphinx has written: links of sources, headings, types of arrays."""

import re
from collections.abc import Callable, Set
from pathlib import Path
from posixpath import dirname, join, normpath

BACK = re.compile(r'(class="viewcode-back" href=")([^"#]+)#([^"]*)(")')
CAPTION = '<p class="caption" role="heading">'
IDENTIFIER = re.compile(r' id="([^"]+)"')
ITEM = re.compile(r'<li><a href="([^":#]+\.html)">[^<]*</a></li>\n?')
MARK = '<span class="p"><span class="pre">{}</span></span>'
NAME = '<span class="pre">{}</span>'
SPACE = '<span class="w"> </span>'
ARRAY = ("ndarray", "[", "tuple", "[", "Any", ",", " ", "...", "]", ",", " ", "dtype", "[")
"""How the type of an array begins, which the alias `NDArray[float64]` stands for."""
SOURCES = "_modules"
"""Folder of the pages with the source of modules."""


def finish(folder: Path) -> None:
    """Correct all pages.

    Args:
        folder: of the site.
    """
    known: dict[str, Set[str]] = {}

    def identifiers(page: str) -> Set[str]:
        if page not in known:
            path = folder / page
            text = path.read_text("utf-8") if path.is_file() else ""
            known[page] = set(IDENTIFIER.findall(text))
        return known[page]

    for path in folder.rglob("*.html"):
        name = path.relative_to(folder).as_posix()
        before = path.read_text("utf-8")
        text = before.replace(CAPTION, CAPTION[:-1] + ' aria-level="2">')
        text = with_short_arrays(text)
        if name.startswith(SOURCES):
            text = with_back_links(text, dirname(name), identifiers)
            text = without_missing(text, path.parent)
        if text != before:
            path.write_text(text, "utf-8")


def with_short_arrays(text: str) -> str:
    """A page in which types of arrays are written as in the code, `NDArray[float64]`.

    Sphinx knows only what they stand for, `ndarray[tuple[Any, ...], dtype[float64]]`.

    Args:
        text: of the page.
    """
    begins = "".join(
        SPACE if part == " " else (NAME if part.isalpha() else MARK).format(part) for part in ARRAY
    )
    kind, ends = r'(<span class="pre">\w+</span>)', MARK.format("]")
    short = NAME.format("NDArray") + MARK.format("[") + r"\1" + ends
    return re.sub(re.escape(begins) + kind + re.escape(2 * ends), short, text)


def with_back_links(text: str, folder: str, identifiers: Callable[[str], Set[str]]) -> str:
    """A page of sources whose links lead to the entries of the reference.

    Sphinx names all objects of a source after the module under which the first is documented.

    Args:
        text: of the page.
        folder: of the page in the site.
        identifiers: those of a page of the site, by its name.
    """

    def placed(link: re.Match[str]) -> str:
        known = identifiers(normpath(join(folder, link[2])))
        parts = link[3].split(".")
        for count in range(len(parts)):
            name = ".".join(parts[count:])
            found = [one for one in known if one == name or one.endswith(f".{name}")]
            if found:
                return f"{link[1]}{link[2]}#{min(found, key=len)}{link[4]}"
        return link[0]

    return BACK.sub(placed, text)


def without_missing(text: str, folder: Path) -> str:
    """A list of pages without those that were not written, such as modules of Python.

    Args:
        text: of the page with the list.
        folder: in which it lies.
    """
    return ITEM.sub(lambda item: item[0] if (folder / item[1]).is_file() else "", text)
