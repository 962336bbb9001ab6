"""Every work that the documentation cites has an entry in the bibliography, and a link to it."""

import re
from collections import Counter

import pytest

from bcfl import methods
from tests.contract.documentation.places import ROOT

PACKAGES = ("assignment", "bcfl", "experiments", "posteriors")
BUILT = {ROOT / "docs" / name for name in ("methods", "api", "studies", "tables", "references.md")}
TEXTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "experiments").rglob("*.md"),
    *(p for p in (ROOT / "docs").rglob("*.md") if BUILT.isdisjoint([p, *p.parents])),
    *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")),
]


def test_every_citation_has_one_entry(references):
    missing = [
        (str(path.relative_to(ROOT)), *citation)
        for path in TEXTS
        for citation in references.citations(path.read_text("utf-8"))
        if references.cited(*citation) is None
    ]
    assert missing == []


def test_every_entry_is_whole_and_cited(references):
    text = "\n".join(path.read_text("utf-8") for path in TEXTS)
    for work in references.works():
        assert {"author", "title"} <= set(work.fields), work.key
        assert re.fullmatch(r"\d{4}[a-z]?", work.year), work.key
        assert work.surnames[0] in text or work.fields["title"] in text, work.key
        numbers = r"\d{4}\.\d{4,5}|cond-mat/\d{7}"
        assert re.fullmatch(numbers, work.fields.get("eprint", "1000.0000")), work.key
        assert re.fullmatch(r"10\.\d{4,}/\S+", work.fields.get("doi", "10.1000/x")), work.key
    for name in ("title", "eprint", "doi"):
        counts = Counter(work.fields.get(name, work.key) for work in references.works())
        assert max(counts.values()) == 1, counts.most_common(1)
    assert references.references_page().count(")=\n") == len(references.works())


@pytest.mark.parametrize("entry", [*methods.RECIPES.values(), *methods.COMBINATORS.values()])
def test_the_source_of_a_method_is_a_link(references, entry):
    own = entry.paper.startswith("this package") or not entry.paper
    assert own or "{ref}`" in references.linked(entry.paper)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(Reid, 1979; Ma 2023)", "(LReid, 1979 reid1979R; LMa 2023 ma2023thesisR)"),
        ("of Ma et al. (2023), eq. 2", "of Ma et al. (L2023 ma2023R), eq. 2"),
        ("Oh, Russell\nand Sastry (2009)", "Oh, Russell and Sastry (L2009 oh2009R)"),
        (
            "one-shot clustering\nfor federated learning",
            "Lone-shot clustering for federated learning zuziak2024R",
        ),
        ("# Ma 2023\n`Ma 2023` [Ma 2023](a.md)", "# Ma 2023\n`Ma 2023` [Ma 2023](a.md)"),
        ("clustered federated learning, May 2023", "clustered federated learning, May 2023"),
    ],
)
def test_citations_become_links(references, text, expected):
    marked = re.sub(r"\{ref\}`(.*?) <work-(\w+)>`", r"L\1 \2R", references.linked(text))
    assert marked == expected
