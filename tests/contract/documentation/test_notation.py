"""Symbols of formulas mean the same on all pages."""

import re

import pytest

from tests.contract.documentation.places import DOCS

OPERATORS = set(
    re.findall(
        r"\w+",
        """
    Bigl Bigr approx bigl bigr cdot cos cup dots exp frac in lVert lceil left leftarrow leq log max
    mathrm mid min odot propto qquad quad rVert rceil right sqrt sum text top underset
""",
    )
)
MARKS = {"bar"}


def symbols(formula):
    """Letters and Greek letters of a formula, without words, operators and accents."""
    formula = re.sub(r"\\(?:mathrm|text)\{[^}]*\}", " ", formula)
    commands = set(re.findall(r"\\([A-Za-z]+)", formula)) - OPERATORS - MARKS
    return commands | set(
        re.findall(r"(?<![A-Za-z\\])[A-Za-z](?![a-z])", re.sub(r"\\[A-Za-z]+", " ", formula))
    )


def formulas(text):
    return re.findall(r"\$\$(.*?)\$\$|\$([^$\n]+)\$", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def notation():
    """Symbols of all pages, and those of single pages by their names."""
    text = (DOCS / "how-it-works.md").read_text("utf-8").partition("\n## Notation\n")[2]
    common, _, single = text.partition("Symbols of single pages")
    first_cells = re.findall(r"^\| (\$.*?) \|", common, flags=re.MULTILINE)
    of_all = {s for cell in first_cells for f in formulas(cell) for s in symbols(f[1])}
    of_single = {}
    for pages_of, cell in re.findall(r"^\| (.*?`) \| (.*) \|$", single, flags=re.MULTILINE):
        found = {s for f in formulas(cell) for s in symbols(f[1])}
        of_single |= {name.strip("-"): found for name in re.findall(r"`([\w-]+)`", pages_of)}
    return of_all, of_single


def test_symbols_of_method_pages_are_those_of_the_notation(notation, pages):
    of_all, of_single = notation
    for path in pages.TEXTS.glob("*.md"):
        name = path.stem.removeprefix("suffix-")
        own = of_single.get("ocfl" if name.startswith("ocfl") else name, set())
        used = {s for f in formulas(path.read_text("utf-8")) for s in symbols("".join(f))}
        assert used <= of_all | own, (path.name, used - of_all - own)


def test_no_symbol_of_a_single_page_means_something_else_on_all(notation):
    of_all, of_single = notation
    for name, own in of_single.items():
        assert (own & of_all) <= set("ijkrt"), name
