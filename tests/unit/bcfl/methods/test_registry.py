"""The list of methods: every option of every method does something, and is told of."""

import dataclasses
import inspect
import itertools
import re
import subprocess
import sys
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

import pytest

from assignment import SolverName
from bcfl import methods
from bcfl.architecture.layout import Layers
from bcfl.methods import COMBINATORS, RECIPES, build, choices, named
from bcfl.policies.bayes.likelihood import Evidences, ScoredBy
from bcfl.policies.bayes.temperature import Temperature
from bcfl.protocol.objective import Curvature, Objective
from posteriors import FusionRule, LocalPosteriorName, Memory

AUTO = {"num_clusters": "auto"}
CONTEXTS = {
    ("bcfl-race", "evidence"): {"scored_by": "cluster"},
    ("bcfl-mht", "first_clusters"): AUTO,
    ("bcfl-mht", "freeing_splits"): AUTO,
    ("bcfl-mht", "deaths"): AUTO,
    ("bcfl-mht", "max_clusters"): AUTO,
    ("bcfl-mht", "pairs"): {**AUTO, "moves": ("merge",)},
}
"""What an option needs to say anything."""
OPTIONS = [
    *((recipe.name, option) for recipe in RECIPES.values() for option in recipe.options),
    *(
        (f"wecfl-{suffix}", option)
        for suffix, combinator in COMBINATORS.items()
        for option in combinator.options
    ),
]


def others(option):
    """Other values of an option, all of those that have names."""
    hints = [option.hint]
    while get_origin(hints[0]) in (Union, UnionType):
        hints = [*get_args(hints[0]), *hints[1:]]
    found = [value for hint in hints for value in _values(hint, option.default)]
    return [value for value in found if value != option.default]


def _values(hint, default):
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) is tuple:
        moves = get_args(hint)[-1] is Ellipsis
        return [()] if moves else [(1, None)]
    known = default if isinstance(default, int | float) else 0.25
    return {
        NoneType: [None],
        bool: [not default],
        int: [int(known) + 3],
        float: [known / 2],
    }[hint]


def told(method):
    """All that a method is, functions by their names."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(vars(method)))


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_of_every_method_changes_it(name, option):
    context = dict(CONTEXTS.get((name, option), {}))
    if option in ("evidence", "reweighed"):
        context["temperature"] = 2.0
    plain = told(build(name, **context))
    for value in others(named(name).options[option]):
        if value == "auto" and option == "num_clusters" and name != "bcfl-mht":
            continue
        changed = told(build(name, **{**context, **_fitting(option, value), option: value}))
        assert changed != plain, (option, value)


def _fitting(option, value):
    """Further options without which a value is refused."""
    if option == "solver" and value in ("hungarian", "numba"):
        return {"cluster_size": (0, 1)}
    return {}


@pytest.mark.parametrize("name", [*RECIPES, *COMBINATORS])
def test_every_option_is_described(name):
    entry = RECIPES.get(name) or COMBINATORS[name]
    for option in entry.options.values():
        assert option.description, option.name
        assert option.read(option.default, name) == option.default
        assert option.allowed


def test_options_of_suffixes_have_names_of_their_own():
    clustered = [name for name in RECIPES if build(name).num_clusters > 1]
    for base, combinator in itertools.product(clustered, COMBINATORS.values()):
        assert not RECIPES[base].options.keys() & combinator.options.keys()
    for one, other in itertools.combinations(COMBINATORS.values(), 2):
        if not set(one.brings) & set(other.brings):
            assert not one.options.keys() & other.options.keys()


def test_choices_are_those_of_the_classes_that_take_them():
    assert get_args(choices.Curvature) == get_args(Curvature)
    assert get_args(choices.Evidence) == get_args(Evidences)
    assert get_args(choices.Fusion) == get_args(FusionRule)
    assert get_args(choices.Layers) == get_args(Layers)
    assert get_args(choices.LocalPosterior) == get_args(LocalPosteriorName)
    assert get_args(choices.Memory) == get_args(Memory)
    assert get_args(choices.ScoredBy) == get_args(ScoredBy)
    assert get_args(choices.Solver) == get_args(SolverName)
    assert get_args(choices.Temperature) == get_args(Temperature)


def test_names_and_options_need_no_torch():
    code = (
        "import sys\n"
        "from bcfl.methods import RECIPES, COMBINATORS, named\n"
        "assert all(one.options for one in (*RECIPES.values(), *COMBINATORS.values()))\n"
        "named('bcfl-mht-8-con-cks').check({'temperature': 2})\n"
        "heavy = {'torch', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_recipe_and_combinator_is_a_public_function():
    public = {name: getattr(methods, name) for name in methods.__all__}
    functions = {inspect.unwrap(one) for one in public.values() if inspect.isfunction(one)}
    for entry in (*RECIPES.values(), *COMBINATORS.values()):
        assert entry.function in functions


def test_a_recipe_shows_all_its_options():
    shown = inspect.signature(methods.bcfl_g).parameters
    assert list(shown) == [*RECIPES["bcfl-g"].options, "objective"]
    assert all(p.kind is p.KEYWORD_ONLY for p in shown.values())
    assert (shown["num_clusters"].default, shown["num_clusters"].annotation) == (4, int)


@pytest.mark.parametrize("entry", [*RECIPES.values(), *COMBINATORS.values()], ids=lambda e: e.name)
def test_help_describes_every_option_once(entry):
    public = [getattr(methods, name) for name in methods.__all__]
    functions = [one for one in public if inspect.isfunction(one)]
    (shown,) = (one for one in functions if inspect.unwrap(one) is entry.function)
    text = inspect.getdoc(shown)
    told_of = re.findall(r"^ {4}(\w+): \S", text.partition("\nRaises:")[0], flags=re.M)
    expected = [*entry.options, "objective" if entry.name in RECIPES else "method"]
    assert sorted(told_of) == sorted(expected)
    whole = " ".join(text.split())
    for option in entry.options.values():
        assert f"{option.name}: {option.description}" in whole
    assert text.startswith(inspect.getdoc(entry.function).partition("\n\nArgs:")[0])
    assert max(map(len, text.split("\n"))) <= 96


def test_help_keeps_what_follows_the_arguments():
    text = inspect.getdoc(methods.bcfl_mht)
    assert text.endswith('such as births `num_clusters="auto"`.')
    assert "Allowed: 'samples' or 'uniform' or 'ggn'" in " ".join(text.split())


def test_available_names_can_be_built():
    names = methods.available()
    assert names[0] == "default"
    assert set(RECIPES) < set(names)
    for name in names:
        assert build(name)
    assert set(dir(methods)) == set(methods.__all__)


def test_names_of_local_training_are_those_of_the_objective():
    fields = {field.name for field in dataclasses.fields(Objective)}
    by_methods = {"curvature", "posterior", "regularizers", "phases", "against", "upload"}
    assert set(choices.TRAINING) == fields - by_methods
    assert set(choices.OTHER_NAMES.values()) <= fields
