"""The generated pages of the documentation cover what there is; they need no Sphinx."""

import importlib
import sys
from pathlib import Path

import pytest

import bcfl
from bcfl import methods

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generated():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("generated")
    finally:
        sys.path.remove(str(ROOT / "docs"))


def test_every_method_has_a_note_and_no_other(generated):
    assert set(generated.NOTES) == set(methods.RECIPES)


@pytest.mark.parametrize("name", ["wecfl", "bcfl-mht"])
def test_a_page_names_the_paper_and_every_option(generated, name):
    page, entry = generated.method_page(name), methods.RECIPES[name]
    assert entry.paper in page
    assert entry.description in page
    assert all(f"| `{option}` |" in page for option in entry.options)


def test_the_reference_has_every_public_package_of_bcfl(generated):
    folders = {path.parent.name for path in Path(bcfl.__file__).parent.glob("*/__init__.py")}
    assert {f"bcfl.{folder}" for folder in folders} <= set(generated.MODULES)


def test_links_out_of_the_documentation_become_names(generated):
    assert (
        generated.results("see [times](../tests/bench/a.md).") == "see times (`tests/bench/a.md`)."
    )


def test_pages_of_tables_keep_pictures_and_name_files(generated):
    page = "[Overview](README.md) [md](bcfl/1/small.md) ![C](bcfl/1/small-figure-1.svg)"
    assert generated.table_page(page) == (
        "[Overview](README.md) md ![C](../../experiments/results/bcfl/1/small-figure-1.svg)"
    )
