"""The generated pages of the documentation cover what there is; they need no Sphinx."""

import contextlib
import doctest
import importlib
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from torch import nn

import bcfl
from bcfl import ClientData, Federation, HypothesisSet, Model, Run, methods
from bcfl.analysis.rows import privacy_columns
from bcfl.trackers import Greedy
from experiments.runs.summary import as_csv

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = ROOT / "experiments"
GENERATED = ("results.md", "references.md", "api", "methods", "studies", "tables")
BUILT = {DOCS / name for name in GENERATED}
WRITTEN = [page for page in DOCS.rglob("*.md") if BUILT.isdisjoint([page, *page.parents])]
RESULTS = [MEASURED / "RESULTS.md", *MEASURED.glob("results/**/*.md")]
PAGES = sorted([*ROOT.glob("*.md"), *WRITTEN, *RESULTS])
FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", flags=re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
DOTTED = re.compile(r"`((?:bcfl|assignment|posteriors|experiments)(?:\.\w+)+)[(`]")
FILES = {"json", "jsonl", "npz", "safetensors"}
VARIABLES = {"hypotheses", "ledger", "method", "privacy", "run"}
"""Names of modules that stand for objects in docstrings, as in `run.predict`."""
DRAWN = (
    "Bigl Bigr Delta Gamma Lambda alpha approx bar beta bigl bigr cos cup delta dots ell eta "
    "exp frac gamma in lVert lambda lceil left leftarrow leq log mathrm max mid min mu odot "
    "omega pi propto qquad quad rVert rceil rho right sigma sqrt sum tau text theta top "
    "underset varepsilon "
)
"""Commands of formulas that the pages are known to draw; others may show as text."""
REFERENCE = re.compile(r"`([a-zA-Z_]\w*(?:\.\w+)+)[`(]")
SEE = re.compile(r"[Ss]ee\s+(?:also\s+)?`(\w+)`")
MET_FIRST = """
bcfl.Federation bcfl.Federation.run bcfl.ClientData bcfl.ClientData.from_arrays bcfl.View bcfl.Model
bcfl.Objective bcfl.Association bcfl.HypothesisSet bcfl.Prediction bcfl.drive bcfl.Run
bcfl.Run.association_graph bcfl.Run.association_probabilities bcfl.Run.co_association
bcfl.Run.metrics bcfl.Run.predict bcfl.Run.predict_new bcfl.Run.save bcfl.Run.to_dataframe
bcfl.methods.available bcfl.methods.build bcfl.analysis.accumulated_association_graph
bcfl.analysis.association_graph bcfl.analysis.client_cluster_graph bcfl.analysis.hypothesis_tree
bcfl.policies.Policy bcfl.policies.candidate bcfl.policies.ranked bcfl.trackers.Consensus
bcfl.trackers.Greedy bcfl.trackers.MultiHypothesis assignment assignment.association_marginals
assignment.best_assignment assignment.iter_assignments assignment.m_best_assignments
posteriors.DiagonalGaussian posteriors.fuse posteriors.merge posteriors.diagonal_curvature
experiments.open experiments.report experiments.datasets.load experiments.partitions.rotated
"""
ENTRY_POINTS = {"bcfl.datasets", "bcfl.partitions", "bcfl.models"}
WORDS = (
    *("association", "hypothesis", "block", "site", "cavity", "origin", "serving", "training"),
    *("data association", "n-scan"),
)


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


@pytest.fixture(scope="module")
def pages(generated):
    del generated
    return sys.modules["method_pages"]


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


def test_the_reference_has_every_public_package_of_bcfl(reference):
    folders = {path.parent.name for path in Path(bcfl.__file__).parent.glob("*/__init__.py")}
    assert {f"bcfl.{folder}" for folder in folders} <= set(reference.MODULES)


def test_the_reference_lists_every_public_name_once_with_its_summary(reference):
    entries = []
    for module in reference.MODULES:
        page, *others = reference.module_pages(module).values()
        for each in (page, *others):
            entries += re.findall(r"auto(?:class|function|exception):: (\S+)", each)
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


def test_the_reference_shows_no_place_in_memory(reference):
    for module in reference.MODULES:
        for page in reference.module_pages(module).values():
            assert not re.search(r"<function|<class|<built-in|\bat 0x", page), module


def test_signatures_of_the_reference_can_be_taken_apart(generated, reference):
    """Else Sphinx prints them on one line, with the full name of every module."""
    signatures = importlib.import_module("signatures")
    for name, value in documented(reference).items():
        if callable(value):
            with contextlib.suppress(ValueError):  # of classes without a signature
                text = signatures.readable(str(inspect.signature(value)), value)
                assert signatures.is_python(text), (name, text)
                assert "lambda" not in text, name


def test_defaults_of_signatures_are_what_factories_make_and_names(generated):
    signatures = importlib.import_module("signatures")

    @dataclass(kw_only=True)
    class Example:
        clock: Callable[[], float] = monotonic
        by_name: dict[str, int] = field(default_factory=dict)
        tracker: object = field(default_factory=Greedy)
        drawn: object = field(default_factory=object)
        done: Callable[[], None] = lambda: None

    assert signatures.readable(str(inspect.signature(Example)), Example) == (
        "(*, clock: collections.abc.Callable[[], float] = monotonic, "
        "by_name: dict[str, int] = {}, tracker: object = Greedy(), drawn: object = object(), "
        "done: collections.abc.Callable[[], None] = ...) -> None"
    )
    assert not signatures.is_python("(a = <factory>)")


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


def documented(reference):
    """Public modules, classes, functions and methods with a docstring, by their full names."""
    found = {}
    for module in reference.MODULES:
        found[module] = importlib.import_module(module)
        for name, value in reference.public(module).items():
            found.setdefault(f"{module}.{name}", value)
            members = vars(value).items() if inspect.isclass(value) else ()
            found |= {f"{module}.{name}.{k}": v for k, v in members if not k.startswith("_")}
    first = {id(value): name for name, value in reversed(found.items()) if has_text(value)}
    return {name: found[name] for name in reversed(first.values())}


def has_text(value):
    method = inspect.isroutine(value) or isinstance(value, property | cached_property)
    return (inspect.ismodule(value) or inspect.isclass(value) or method) and value.__doc__


@pytest.fixture(scope="module")
def examples(reference):
    """The examples of all public docstrings by their full names."""
    parser = doctest.DocTestParser()
    texts = {name: inspect.cleandoc(value.__doc__) for name, value in documented(reference).items()}
    return {
        name: parser.get_doctest(text, {}, name, None, 0)
        for name, text in texts.items()
        if ">>> " in text
    }


def test_examples_in_docstrings_are_true(examples):
    """Each by itself, or with the names of the example that it says it is with."""
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    federation = examples["bcfl.Federation"]
    runner.run(federation, clear_globs=False)
    for name, example in examples.items():
        if name != "bcfl.Federation":
            shared = "example of `bcfl.Federation`" in example.docstring
            example.globs = dict(federation.globs) if shared else {}
            runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


def test_names_that_people_meet_first_have_an_example(examples):
    assert MET_FIRST.split() == [name for name in MET_FIRST.split() if name in examples]


def test_no_example_is_left_out_of_the_test(examples, reference):
    packages = {module.partition(".")[0] for module in reference.MODULES}
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    written = [re.findall(r"^\s*>>> ", path.read_text("utf-8"), flags=re.M) for path in paths]
    assert sum(map(len, written)) == sum(len(each.examples) for each in examples.values())


def name_of(page):
    return str(page.relative_to(ROOT).with_suffix(""))


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_of_the_packages_are_there(page):
    for name in set(DOTTED.findall(page.read_text("utf-8"))) - ENTRY_POINTS:
        assert exists(name), name


def test_references_in_docstrings_are_full_names(reference):
    """What `help` takes: no name of a module or class without its package."""
    packages = {module.partition(".")[0] for module in reference.MODULES}
    inner = {path.stem for package in packages for path in (ROOT / package).rglob("*.py")}
    inner |= {path.name for package in packages for path in (ROOT / package).rglob("*/")}
    short = []
    for place, value in documented(reference).items():
        text = inspect.getdoc(value) or ""
        short += [(place, name) for name in SEE.findall(text)]
        for name in REFERENCE.findall(text):
            head, _, rest = name.partition(".")
            if head in packages:
                assert exists(name), (place, name)
            elif rest not in FILES and (head in inner - VARIABLES or head[0].isupper()):
                short.append((place, name))
    assert not short, "\n".join(map(str, short))


def test_help_of_a_run_shows_methods_that_take_the_run_as_self():
    for name, value in vars(Run).items():
        if inspect.isfunction(value) and not name.startswith("__"):
            assert next(iter(inspect.signature(value).parameters)) == "self", name
            assert not re.search(r"^ +runs?: ", value.__doc__ or "", flags=re.MULTILINE), name


def test_first_lines_of_properties_have_no_colon(reference):
    """Sphinx takes what stands before one for the type of the property."""
    for name, value in documented(reference).items():
        if isinstance(value, property | cached_property):
            first = re.sub(r"`[^`]*`", "", inspect.getdoc(value).split("\n")[0])
            assert ": " not in first, name


@pytest.mark.parametrize("owner", [Federation, Run, HypothesisSet, ClientData])
def test_help_says_what_methods_return(owner):
    for name, value in vars(owner).items():
        method = getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isfunction(method):
            nothing = inspect.signature(method).return_annotation in (None, "None")
            assert nothing or re.search(r"^ +Returns:$", method.__doc__, flags=re.M), name


def test_defaults_that_were_measured_name_the_section_of_a_study():
    entries = [*methods.RECIPES.values(), *methods.COMBINATORS.values()]
    sources = {option.source for entry in entries for option in entry.options.values()}
    measured = {source for source in sources if source.startswith("measured")}
    assert measured
    for source in measured:
        study, title = re.fullmatch(r'measured, studies/([\w-]+) \("(.+)"\)', source).groups()
        text = (MEASURED / "results" / "studies" / f"{study}.md").read_text("utf-8")
        assert re.search(rf"^#+ {re.escape(title)}$", text, flags=re.MULTILINE), source


def test_help_of_an_option_says_its_default_and_where_it_is_from():
    text = " ".join(inspect.getdoc(methods.bcfl_race).split())
    assert "Default: 0.8; measured, studies/association-posterior" in text
    assert "Default: 'ggn'; the Gauss-Newton matrix" in text


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


@pytest.fixture(scope="module")
def columns():
    """The names that the page of columns explains: those of the first cells of its tables."""
    text = (DOCS / "columns.md").read_text("utf-8").partition("## Which file has which column")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", text, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
def test_every_column_of_a_round_is_explained(columns, likelihood):
    random = np.random.default_rng(0)
    inputs = random.normal(size=(4, 12, 3)).astype(np.float32)
    targets = (inputs[..., :2] > 0).astype(np.float32)
    if likelihood == "categorical":
        targets = targets[..., 0].astype(np.int64)
    clients = [
        ClientData.from_arrays(f"c{i}", (x[:8], y[:8]), (x[8:], y[8:]), group=i % 2)
        for i, (x, y) in enumerate(zip(inputs, targets, strict=True))
    ]
    model = Model(
        name="linear",
        build=lambda: nn.Sequential(nn.Linear(3, 2)),
        input_shape=(3,),
        num_outputs=2,
        likelihood=likelihood,
    )
    method = methods.build("bcfl-mh-2", num_clusters=2)
    run = Federation(clients, model, method, objectives=True).run(2)
    assert set(run.to_dataframe().columns) <= columns
    row = run.rows()[-1]
    assert set(row) - {"seconds"} <= columns
    assert set(row["facts"]) <= columns


def test_every_column_of_the_files_of_a_run_is_explained(columns):
    header = as_csv({}).strip().split(",")
    assert "weighted_f1" in header
    assert set(header) <= columns
    state = SimpleNamespace(most_releases=0)
    privacy = SimpleNamespace(epsilon=float)
    assert set(privacy_columns(state, privacy)) <= columns


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
