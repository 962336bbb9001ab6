"""Examples in docstrings are true, references lead somewhere, help says what is returned."""

import doctest
import inspect
import re
from functools import cached_property

import pytest

from bcfl import ClientData, Federation, HypothesisSet, Run, methods
from tests.contract.documentation.places import MEASURED, ROOT, documented, exists

FILES = {"json", "jsonl", "npz", "safetensors"}
VARIABLES = {"hypotheses", "ledger", "method", "privacy", "run"}
"""Names of modules that stand for objects in docstrings, as in `run.predict`."""
REFERENCE = re.compile(r"`([a-zA-Z_]\w*(?:\.\w+)+)[`(]")
SEE = re.compile(r"[Ss]ee\s+(?:also\s+)?`(\w+)`")
MET_FIRST = """
bcfl.Federation bcfl.Federation.run bcfl.ClientData bcfl.ClientData.from_arrays bcfl.View bcfl.Model
bcfl.Objective bcfl.Association bcfl.HypothesisSet bcfl.Prediction bcfl.drive bcfl.Run
bcfl.Run.association_graph bcfl.Run.association_probabilities bcfl.Run.co_association
bcfl.Run.metrics bcfl.Run.predict bcfl.Run.predict_new bcfl.Run.save bcfl.Run.to_dataframe
bcfl.Run.predict_values bcfl.Run.predict_new_values bcfl.Run.tuned bcfl.Run.network
bcfl.Run.smoothed bcfl.Run.hypothesis_tree bcfl.Run.client_cluster_graph bcfl.Run.to_xarray
bcfl.Run.to_pyro bcfl.Run.plot_association_graph bcfl.Hypothesis bcfl.Method
bcfl.methods.available bcfl.methods.build bcfl.analysis.accumulated_association_graph
bcfl.analysis.association_graph bcfl.analysis.client_cluster_graph bcfl.analysis.hypothesis_tree
bcfl.policies.Policy bcfl.policies.candidate bcfl.policies.ranked bcfl.trackers.Consensus
bcfl.trackers.Greedy bcfl.trackers.MultiHypothesis assignment assignment.association_marginals
assignment.best_assignment assignment.iter_assignments assignment.m_best_assignments
posteriors.DiagonalGaussian posteriors.fuse posteriors.merge posteriors.diagonal_curvature
experiments.open experiments.report experiments.datasets.load experiments.partitions.rotated
"""


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
    """Figures as methods of a run have the example of the function that they are."""
    packages = {module.partition(".")[0] for module in reference.MODULES}
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    written = [re.findall(r"^\s*>>> ", path.read_text("utf-8"), flags=re.M) for path in paths]
    once = [each for name, each in examples.items() if not name.startswith("bcfl.Run.plot_")]
    assert sum(map(len, written)) == sum(len(each.examples) for each in once)


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
