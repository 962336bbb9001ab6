"""Pages of methods: a text, formulas, options and an example of each."""

import re

import pytest

from bcfl import methods

DRAWN = (
    "Bigl Bigr Delta Gamma Lambda alpha approx bar beta bigl bigr cos cup delta dots ell eta "
    "exp frac gamma in lVert lambda lceil left leftarrow leq log mathrm max mid min mu odot "
    "omega pi propto qquad quad rVert rceil rho right sigma sqrt sum tau text theta top "
    "underset varepsilon "
)
"""Commands of formulas that the pages are known to draw; others may show as text."""


def test_every_method_and_suffix_has_a_text_and_no_other(pages):
    suffixes = {f"suffix-{name}" for name in methods.COMBINATORS}
    texts = {path.stem for path in pages.TEXTS.glob("*.md")}
    assert texts == {"index", *methods.RECIPES, *suffixes}


@pytest.mark.parametrize("name", [*methods.RECIPES, *(f"suffix-{n}" for n in methods.COMBINATORS)])
def test_a_text_has_its_sections_and_displayed_formulas(pages, name):
    kind = "suffix" if name.startswith("suffix-") else "method"
    intro, sections = pages.text_of(name, pages.SECTIONS[kind])
    assert 20 < len(intro.split()) < 90
    steps = sections[pages.SECTIONS[kind][0]]
    assert steps.startswith("1. ")
    assert "$$" in steps or name == "local"


def test_formulas_of_methods_have_only_commands_that_are_drawn(pages):
    for path in pages.TEXTS.glob("*.md"):
        formulas = re.findall(r"\$\$.*?\$\$|\$[^$\n]+\$", path.read_text("utf-8"), flags=re.DOTALL)
        commands = {command for each in formulas for command in re.findall(r"\\([A-Za-z]+)", each)}
        assert commands <= set(DRAWN.split()), path.name


def test_a_missing_section_is_an_error(pages, monkeypatch, tmp_path):
    (tmp_path / "ifca.md").write_text("Text.\n\n## Cost\n\nNone.\n")
    monkeypatch.setattr(pages, "TEXTS", tmp_path)
    with pytest.raises(ValueError, match=r"ifca\.md must have the sections"):
        pages.text_of("ifca", pages.SECTIONS["method"])


@pytest.mark.parametrize("name", methods.RECIPES)
def test_the_example_of_a_page_makes_its_method(generated, name):
    found = re.search(r'''methods\.build\("(.*?)"''', generated.method_page(name))
    assert found[1] == methods.RECIPES[name].example


def test_parts_say_what_wraps_what(pages):
    lines = pages.parts_of(methods.build("bcfl-race-3")).split("\n")
    names = [re.search(r"`(\w+)(?: <\S+>)?`[,.]", line) for line in lines]
    assert [(len(line) - len(line.lstrip())) // 2 for line in lines] == [0, 1, 1, 2, 0, 0, 0]
    assert [name[1] for name in names[:4]] == [
        "WarmUp",
        "KMeansAssociation",
        "AnnealedAssociation",
        "LikelihoodAssociation",
    ]
    assert "3 hypotheses at the start" in lines[-1]


@pytest.mark.parametrize("name", ["wecfl", "bcfl-mht"])
def test_a_page_names_the_paper_and_every_option(generated, name):
    page, entry = generated.method_page(name), methods.RECIPES[name]
    assert entry.paper in page
    assert entry.description in page
    assert all(f"| `{option}` |" in page for option in entry.options)


def test_measured_defaults_are_links_and_the_page_says_so_once(generated, pages):
    page = generated.method_page("bcfl-race")
    assert "Default: [measured]" not in page
    study = "../../experiments/results/studies/association-posterior.md#what-else-was-tried"
    assert f"| `burn_in` | [`0.3`]({study}) | round, or share" in page
    before, _, _ = page.partition("| option | default | meaning |")
    assert before.endswith(f"{pages.MEASURED}\n\n")
    assert pages.MEASURED not in generated.method_page("local").partition("## Options")[0]


def test_what_to_tune_first_names_options_of_the_page(generated, pages):
    for page, text in pages.FIRST.items():
        name = page.removeprefix("suffix-")
        suffix = page != name
        entry = methods.COMBINATORS[name] if suffix else methods.RECIPES[name]
        written = generated.suffix_page(name) if suffix else generated.method_page(name)
        assert f"Tune first: {text}.\n" in written
        named = set(re.findall(r"`(\w+)(?:=[^`]*)?`", text))
        assert named <= {*entry.options, "auto"}, page


def test_the_option_of_all_methods_is_one_line(generated):
    rows = [line for line in generated.method_page("ifca").splitlines() if "`calibration`" in line]
    assert len(rows) == 1
    assert len(re.sub(r"\([^)]*\)", "", rows[0]).split()) < 30
    assert "experiments/results/studies/calibration.md" in rows[0]
