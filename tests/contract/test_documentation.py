"""The generated pages of the documentation cover what there is; they need no Sphinx."""

import doctest
import importlib
import re
import sys
from pathlib import Path
from pkgutil import walk_packages

import pytest

import bcfl
from bcfl import methods

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STUDIES = ROOT / "experiments" / "results" / "studies"
WRITTEN = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")]
RESULTS = [ROOT / "experiments" / "RESULTS.md", *STUDIES.glob("*.md")]
PAGES = sorted([*WRITTEN, *RESULTS])
CODE = re.compile(r"```.*?```|`[^`\n]*`", flags=re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
DOTTED = re.compile(r"`((?:bcfl|assignment|posteriors|experiments)(?:\.\w+)+)[(`]")
ENTRY_POINTS = {"bcfl.datasets", "bcfl.partitions", "bcfl.models"}
GENERATED = {"api", "methods", "tables"}
COPIES = {"results.md": ROOT / "experiments" / "RESULTS.md", "studies": STUDIES}
WORDS = ("association", "hypothesis", "block", "site", "cavity", "origin", "serving", "training")


@pytest.fixture(scope="module")
def generated():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("generated")
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def reference(generated):
    return sys.modules["reference"]


def test_every_method_has_a_note_and_no_other(generated):
    assert set(generated.NOTES) == set(methods.RECIPES)


@pytest.mark.parametrize("name", ["wecfl", "bcfl-mht"])
def test_a_page_names_the_paper_and_every_option(generated, name):
    page, entry = generated.method_page(name), methods.RECIPES[name]
    assert entry.paper in page
    assert entry.description in page
    assert all(f"| `{option}` |" in page for option in entry.options)


def test_the_reference_has_every_public_package_of_bcfl(reference):
    folders = {path.parent.name for path in Path(bcfl.__file__).parent.glob("*/__init__.py")}
    assert {f"bcfl.{folder}" for folder in folders} <= set(reference.MODULES)


def test_the_reference_lists_every_public_name_once_with_its_summary(reference):
    entries = []
    for module in reference.MODULES:
        page = reference.module_page(module)
        entries += re.findall(r"auto(?:class|function|exception):: (\S+)", page)
        listed = [name for names in reference.by_subject(module).values() for name in names]
        assert sorted(listed) == sorted(reference.public(module)), module
        for name in listed:
            row = re.search(rf"^\| \S*`{name}\b.*\| (.*) \|$", page, flags=re.MULTILINE)
            assert row, f"{module}.{name} is in no table"
            assert row[1], f"{module}.{name} has no docstring"
    objects = [
        getattr(importlib.import_module(m), n) for m, _, n in (e.rpartition(".") for e in entries)
    ]
    assert len({id(each) for each in objects}) == len(objects)


@pytest.mark.parametrize("package", ["bcfl", "posteriors"])
def test_examples_in_docstrings_are_true(package):
    root = importlib.import_module(package)
    for found in walk_packages(root.__path__, f"{package}."):
        path = Path(root.__path__[0]).parent / Path(*found.name.split("."))
        sources = (path.with_suffix(".py"), path / "__init__.py")
        if any(each.exists() and ">>> " in each.read_text("utf-8") for each in sources):
            assert doctest.testmod(importlib.import_module(found.name)).failed == 0


def anchors(page):
    """Targets of links into a page: its headings as Sphinx and GitHub name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if DOCS in path.parents:
            first, *rest = path.relative_to(DOCS).parts
            if first in GENERATED:
                continue
            path = COPIES[first].joinpath(*rest) if first in COPIES else path
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_the_packages_are_there(page):
    if page.name == "CHANGELOG.md":
        return
    for name in set(DOTTED.findall(page.read_text("utf-8"))) - ENTRY_POINTS:
        assert exists(name), name


def exists(name):
    """Whether a dotted name is a module, or reached from one by attributes or fields."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False


def test_the_glossary_has_the_words_of_the_field():
    text = (DOCS / "glossary.md").read_text("utf-8").lower()
    assert [word for word in WORDS if f"*{word}" not in text] == []


def test_links_out_of_the_documentation_become_names(generated):
    assert (
        generated.results("see [times](../tests/bench/a.md).") == "see times (`tests/bench/a.md`)."
    )


def test_pages_of_tables_keep_pictures_and_name_files(generated):
    page = "[Overview](README.md) [md](bcfl/1/small.md) ![C](bcfl/1/small-figure-1.svg)"
    assert generated.table_page(page) == (
        "[Overview](README.md) md ![C](../../experiments/results/bcfl/1/small-figure-1.svg)"
    )
