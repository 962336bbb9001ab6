"""Links and names of pages lead somewhere; pages of results open with their answer."""

import importlib
import re

import pytest
from typer.main import get_command

from experiments.cli import app
from tests.contract.documentation.places import BUILT, DOCS, PAGES, RESULTS, exists, name_of

OPENED = ("results", "studies")
"""Folders of pages that begin with what was found."""
FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", flags=re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
DOTTED = re.compile(r"`((?:bcfl|assignment|posteriors|experiments)(?:\.\w+)+)[(`]")
ENTRY_POINTS = {"bcfl.datasets", "bcfl.partitions", "bcfl.models"}
WORDS = (
    *("association", "hypothesis", "block", "site", "cavity", "origin", "serving", "training"),
    *("data association", "n-scan"),
)


def test_commands_of_notebooks_are_found_beside_the_packages_that_they_see(generated, tmp_path):
    environment = importlib.import_module("environment")
    folders = [tmp_path / name for name in ("docs", "own")]
    paths = [str(folder / "lib" / "python3" / "site-packages") for folder in folders]
    (folders[1] / "bin").mkdir(parents=True)
    found = environment.folders_of_commands([str(tmp_path), *paths, "site-packages"])
    assert found == [folders[1] / "bin"]


def test_links_of_sources_lead_to_entries_and_captions_have_a_level(generated, tmp_path):
    finished = importlib.import_module("finished")
    pages = {
        "api/a.html": '<dt id="bcfl.Run.save"></dt><dt id="bcfl.Run"></dt>',
        "_modules/b/c.html": '<a class="viewcode-back" href="../../api/a.html#bcfl.x.Run.save">',
        "_modules/index.html": '<li><a href="time.html">time</a></li>\n'
        '<li><a href="b/c.html">b</a></li>',
        "index.html": '<p class="caption" role="heading">Start</p>',
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    finished.finish(tmp_path)
    finished.finish(tmp_path)
    after = {name: (tmp_path / name).read_text() for name in pages}
    assert 'href="../../api/a.html#bcfl.Run.save"' in after["_modules/b/c.html"]
    assert after["_modules/index.html"] == '<li><a href="b/c.html">b</a></li>'
    assert after["index.html"] == '<p class="caption" role="heading" aria-level="2">Start</p>'


def test_types_of_arrays_are_written_as_in_the_code(generated):
    finished = importlib.import_module("finished")
    parts = [*finished.ARRAY, "float64", "]", "]"]
    text = "".join(
        finished.SPACE
        if part == " "
        else (finished.NAME if part.isalnum() else finished.MARK).format(part)
        for part in parts
    )
    words = re.sub("<[^>]+>", "", finished.with_short_arrays(f"<em>{text}</em>"))
    assert re.sub("<[^>]+>", "", text) == "ndarray[tuple[Any, ...], dtype[float64]]"
    assert words == "NDArray[float64]"


def test_figures_of_notebooks_have_a_text_for_those_who_do_not_see_them():
    cells = [
        cell
        for path in [*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")]
        for cell in re.findall(
            r"```\{code-cell\} python\n(.*?)```", path.read_text("utf-8"), re.DOTALL
        )
        if re.search(r"\bplot_\w+\(", cell)
    ]
    assert len(cells) > 4
    for cell in cells:
        assert re.match(r"---\nmystnb:\n  image:\n    alt: .{20}", cell), cell


def anchors(page):
    """Targets of links into a page: its headings as Sphinx and GitHub name them."""
    text = FENCED.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#{1,3} (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_of_the_repository(page):
    for target, anchor in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if re.match(r"\w+:", target):
            continue
        path = (page.parent / target).resolve() if target else page
        assert BUILT.isdisjoint([path, *path.parents]), f"only the build makes {target}"
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_links_to_results_lead_to_their_copies_in_the_site(generated):
    text = "[a](../experiments/results/studies/x.md#y) [b](../experiments/results/README.md)"
    assert generated.in_site(text, "choosing") == "[a](studies/x.md#y) [b](tables/README.md)"
    text = "[a](../../experiments/RESULTS.md) [b](../limits.md) [c](https://x.org/RESULTS.md)"
    assert generated.in_site(text, "tutorials/first") == text.replace(
        "../../experiments/RESULTS.md", "../results.md"
    )


@pytest.mark.parametrize("page", [p for p in RESULTS if p.parent.name in OPENED], ids=name_of)
def test_a_page_of_results_opens_with_its_answer(page):
    text = page.read_text("utf-8")
    _, first, second, *_ = text.split("\n\n")
    opening = second if first.startswith("[Overview]") else first
    assert len(opening.split()) > 20
    assert not opening.startswith(("`", "|", "#", "!"))
    summary = page.with_suffix("") / "summary.md"
    whole = summary.read_text("utf-8").strip() if summary.exists() else opening
    assert whole.startswith(opening)
    assert whole in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_of_the_packages_are_there(page):
    for name in set(DOTTED.findall(page.read_text("utf-8"))) - ENTRY_POINTS:
        assert exists(name), name


def test_the_glossary_has_the_words_of_the_field():
    text = (DOCS / "glossary.md").read_text("utf-8").lower()
    assert [word for word in WORDS if f"*{word}" not in text] == []


def test_formulas_have_thin_spaces_and_tall_integrals(generated):
    spaced = importlib.import_module("formulas").spaced
    math = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow>{}</mrow></math>'
    logs = spaced(math.format("<mi>c</mi><mi>log</mi><mi>w</mi><mo>=</mo><mi>log</mi><mo>(</mo>"))
    tags = " ".join(re.findall(r"<(\w+)[ >]", logs))
    assert tags == "math mrow mi mspace mi mspace mi mo mi mo"
    assert 'minsize="2.2em"' in spaced(math.format("<mo>∫</mo>"))
    limits = spaced(math.format("<munder><mo>∑</mo><mi>j</mi></munder>"))
    assert '<mpadded height="+0.7em"><mi>j</mi></mpadded>' in limits


def test_links_out_of_the_documentation_become_names(generated):
    assert (
        generated.results("see [times](../tests/bench/a.md).") == "see times (`tests/bench/a.md`)."
    )


def test_pages_of_tables_keep_pictures_and_offer_files(generated):
    page = "[Overview](README.md) [md](bcfl/1/small.md) ![C](bcfl/1/small-figure-1.svg)"
    assert generated.table_page(page) == (
        "[Overview](README.md) {download}`md <../../experiments/results/bcfl/1/small.md>` "
        "![C](../../experiments/results/bcfl/1/small-figure-1.svg)"
    )
    assert generated.table_page("[Table 1, whole](bcfl/1/small.md)") == (
        "[Table 1, whole](bcfl.md#table-1-whole-scale-small)"
    )


def test_pages_of_results_link_to_one_another(generated):
    text = "[all](../../RESULTS.md#x) [a](../../../tests/a.md) [t](../field.md) [s](speed.md#y)"
    assert generated.results(text) == (
        "[all](../results.md#x) a (`tests/a.md`) [t](../tables/field.md) [s](speed.md#y)"
    )


def test_the_synopsis_of_the_command_has_every_option():
    text = FENCED.search((DOCS / "command.md").read_text("utf-8"))[0]
    parts = dict(re.findall(r"^bcfl (\w+)(.*(?:\n .*)*)", text, flags=re.MULTILINE))
    elsewhere = {"reproduce", "federation", "list"}
    commands = get_command(app).commands
    assert set(parts) >= set(commands) - elsewhere
    for name in set(commands) - elsewhere:
        options = {option for p in commands[name].params for option in (*p.opts, *p.secondary_opts)}
        options = {option for option in options if option.startswith("--")}
        missing = (
            options - set(re.findall(r"--[\w-]+", parts[name])) - {"--help", "--debug", "--tune"}
        )
        assert not missing, (name, missing)


def test_wide_outputs_and_pictures_keep_their_size_and_scroll():
    style = (DOCS / "_static" / "extra.css").read_text("utf-8")
    assert "pre-wrap" not in style
    scrolling = re.search(r"\.content p:has\((.*?)\) \{\s*overflow-x: auto;", style, re.DOTALL)[1]
    for picture in ("machine.", "architecture.", "association-graph."):
        assert picture in scrolling
