"""Formulas as MathML, spaced as TeX would: browsers draw it without a script."""

from itertools import pairwise
from xml.etree import ElementTree

MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)
LIMITS = ({"height": "+0.7em"}, {"depth": "+0.3em"})  # space above the lower, below the upper
THIN = "0.167em"
BARS = ("‖", "∥", "|")
SUMS = ("∑", "∏", "∫")
FUNCTIONS = ("log", "exp", "max", "min", "diag")
TALL = {"stretchy": "true", "symmetric": "true", "minsize": "2.2em"}


def spaced(formula: str) -> str:
    """A formula with thin spaces around functions and sums, and limits apart from their sums.

    Limits would overlap their sums where the system has no math font.

    Args:
        formula: MathML as latex2mathml writes it.
    """
    root = ElementTree.fromstring(formula)
    displayed = root.get("display") == "block"
    for part in list(root.iter()):
        if _text(part) == ":":
            part.tag = f"{{{MATHML}}}mo"
            part.attrib |= {"lspace": "0.278em", "rspace": "0.278em"}
        elif _text(part) in BARS:
            part.set("stretchy", "false")
        elif _text(part) == "diag" and part.tag.endswith("mo"):
            part.attrib |= {"lspace": THIN, "rspace": "0"}
        elif displayed and _text(part) == "∫":
            part.attrib |= TALL
        if len(part) > 1 and _text(part[0]) in SUMS[:2]:
            _set_apart(part)
        if part.tag.endswith("mrow"):
            part[:] = _with_spaces(list(part))
    return ElementTree.tostring(root, encoding="unicode")


def _set_apart(part: ElementTree.Element) -> None:
    for place, space in enumerate(LIMITS[: len(part) - 1], start=1):
        padded = ElementTree.Element(f"{{{MATHML}}}mpadded", space)
        padded.append(part[place])
        part[place] = padded


def _with_spaces(parts: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Parts of a row with a thin space on either side of a function, but none at operators."""
    placed = parts[:1]
    for before, part in pairwise(parts):
        if _are_apart(before, part):
            placed.append(ElementTree.Element(f"{{{MATHML}}}mspace", {"width": THIN}))
        placed.append(part)
    return placed


def _are_apart(before: ElementTree.Element, part: ElementTree.Element) -> bool:
    if _is_operator(before) or _is_operator(part):
        return False
    of_function = _core(part) in FUNCTIONS or _core(before) in FUNCTIONS
    return of_function or (_core(part) in SUMS and before.tag.endswith("mfrac"))


def _is_operator(part: ElementTree.Element) -> bool:
    return part.tag.endswith(("mo", "mspace")) and _text(part) not in SUMS


def _core(part: ElementTree.Element) -> str:
    """The text of a symbol, or of the base of one with limits, subscripts or superscripts."""
    return _core(part[0]) if len(part) and not part.tag.endswith(("mrow", "mfrac")) else _text(part)


def _text(part: ElementTree.Element) -> str:
    return (part.text or "").strip()
