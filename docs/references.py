"""The works that the project cites: `references.bib`, a page of it, and links to its entries.

A citation is authors and a year, as in `Ghosh et al. 2020` or `Oh, Russell and Sastry (2009)`, or
the title of a work of at least five words.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BIBLIOGRAPHY = Path(__file__).parent / "references.bib"
ENTRY = re.compile(r"^@(\w+)\{(\w+),\n(.*?)^\}", flags=re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", flags=re.MULTILINE)
VENUES = ("journal", "booktitle", "publisher", "school", "institution", "howpublished", "note")
THESES = {"phdthesis": "PhD thesis, ", "mastersthesis": "Master's thesis, "}
IDENTIFIERS = (("eprint", "arXiv", "arxiv.org/abs"), ("doi", "doi", "doi.org"))
LEAST_WORDS = 5
"""Titles of fewer words, such as that of a thesis, may be words of the text."""
_NAME = r"(?:van der )?[A-Z][\w'’-]*\w"
CITATION = re.compile(
    rf"\b({_NAME}(?:,?\s+and\s+{_NAME}|\s+et\s+al\.|(?:,\s+{_NAME})+(?:,?\s+and\s+{_NAME})?)?),?"
    r"\s+(\()?((?:19|20)\d\d[a-z]?)\b(?(2)(?=\)))"
)
NO_CITATIONS = {"Apache", "ISIC", "January", "March", "October", "RNG", "Since", "TREC"}
SURNAME = re.compile(r"(?:\b[a-z]+ )*\S+$")
APART = re.compile(
    r"^```.*?^```|^:::\{.*?$|^#.*?$|`[^`]*`|\{\w+\}`[^`]*`|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$|\$[^$\n]+\$",
    flags=re.MULTILINE | re.DOTALL,
)
"""What no link is set into: code, headings, roles, links and formulas."""


@dataclass(frozen=True)
class Work:
    """A work that is cited.

    Attributes:
        key: of its entry.
        kind: of the entry, such as `article`.
        fields: by name.
    """

    key: str
    kind: str
    fields: dict[str, str]

    @property
    def authors(self) -> list[str]:
        """Names in full."""
        return self.fields["author"].split(" and ")

    @property
    def surnames(self) -> list[str]:
        """Last names of the authors, with `van der` and the like."""
        return [SURNAME.search(name)[0] for name in self.authors]

    @property
    def year(self) -> str:
        """With a letter where an author has several of a year; empty if it has none."""
        return self.fields.get("year", "")

    @property
    def links(self) -> str:
        """Links to the work, in Markdown."""
        found = []
        for name, kind, address in IDENTIFIERS:
            if name in self.fields:
                number = self.fields[name]
                found.append(f" [{kind}:{number}](https://{address}/{number}).")
        return "".join(found)

    @property
    def entry(self) -> str:
        """The paragraph of the page, with a target for links."""
        venue = next((self.fields[name] for name in VENUES if name in self.fields), "")
        when = f" ({self.year})" if self.year else ""
        where = f" {THESES.get(self.kind, '')}{venue}." if venue else ""
        text = f"{', '.join(self.authors)}{when}. *{self.fields['title']}*.{where}{self.links}"
        return f"({target(self.key)})=\n{text}\n"


def target(key: str) -> str:
    """The name by which pages link to an entry.

    Args:
        key: of the entry.
    """
    return f"work-{key}"


@cache
def works() -> tuple[Work, ...]:
    """All entries of the bibliography, in its order."""
    text = BIBLIOGRAPHY.read_text("utf-8")
    entries = ENTRY.findall(text)
    return tuple(Work(key, kind, dict(FIELD.findall(rows))) for kind, key, rows in entries)


def references_page() -> str:
    """The page of all works that are cited."""
    intro = (
        "```{index} citation, BibTeX\n```\n\n# References\n\nThe works that these pages and the "
        "docstrings cite, also as {download}`BibTeX <references.bib>`. For a citation of this "
        "package itself, see `CITATION.cff`. Equations, tables and figures of *A Bayesian "
        "framework for clustered federated learning* have the numbers of its manuscript of 2024.\n"
    )
    ordered = sorted(works(), key=lambda work: (work.surnames[0].lower(), work.year))
    return "\n".join([intro, *(work.entry for work in ordered)])


def cited(authors: str, year: str) -> Work | None:
    """The work of a citation; None if the bibliography has none, or several.

    Args:
        authors: as they are named, such as `Ghosh et al.`.
        year: with a letter if the citation has one.
    """
    names = re.split(r",?\s+and\s+|,\s+|\s+et\s+al\.", authors)
    first, several = names[0], len(names) > 1
    fitting = [w for w in works() if w.year == year and w.surnames[0] == first]
    exact = [work for work in fitting if (len(work.authors) > 1) == several]
    found = exact or fitting
    return found[0] if len(found) == 1 else None


def citations(text: str) -> list[tuple[str, str]]:
    """Authors and year of every citation in a text.

    Args:
        text: Markdown, or a docstring.
    """
    found = CITATION.findall(re.sub(r"\s*\n[\s#]*", " ", text))
    return [(authors, year) for authors, _, year in found if authors not in NO_CITATIONS]


def linked(text: str) -> str:
    """A page with its citations as links to the entries.

    Args:
        text: in MyST Markdown.
    """
    parts, last = [], 0
    for apart in APART.finditer(text):
        parts += [with_roles(text[last : apart.start()]), apart[0]]
        last = apart.end()
    return "".join([*parts, with_roles(text[last:])])


def with_roles(text: str, role: str = "{ref}") -> str:
    """Text without markup with its citations as links.

    Args:
        text: without code, links and formulas.
        role: as MyST or reStructuredText write it.
    """
    titles = {re.sub(r"\s+", " ", w.fields["title"]).lower(): w for w in works()}
    names = "|".join(
        re.escape(t).replace(r"\ ", r"\s+") for t in titles if len(t.split()) >= LEAST_WORDS
    )

    def of_title(found: re.Match[str]) -> str:
        return _link(found[0], titles[_joined(found[0]).lower()], role)

    def of_citation(found: re.Match[str]) -> str:
        work = cited(_joined(found[1]), found[3])
        if work is None:
            return found[0]
        name, year = _joined(found[1]), found[3]
        return f"{name} ({_link(year, work, role)}" if found[2] else _link(found[0], work, role)

    text = re.sub(names, of_title, text, flags=re.IGNORECASE)
    return CITATION.sub(of_citation, text)


def _joined(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _link(text: str, work: Work, role: str) -> str:
    return f"{role}`{_joined(text)} <{target(work.key)}>`"
