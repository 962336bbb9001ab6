"""Lines of methods: distinct on a page, and the same on others."""

from itertools import combinations

import pytest

from bcfl.drawing import COLOURS
from bcfl.methods import RECIPES
from experiments.reports.pictures.method_styles import (
    FIRST,
    has_style_of_run,
    method_styles,
)

SEEN = ("color", "linestyle")
DEMO = ("fedavg", "ifca", "wecfl", "bcfl-g", "bcfl-mh-6", "bcfl-mht-8", "default")
GRID = tuple(f"wecfl@num_clusters={k}" for k in (2, 4, 6))


def looks(names):
    return {name: tuple(style[key] for key in SEEN) for name, style in method_styles(names).items()}


@pytest.mark.parametrize(
    "page", [["wecfl"], ["wecfl", "fedavg"], ["bcfl-mh-6", "wecfl", "ifca"], DEMO[::-1]]
)
def test_a_method_looks_the_same_on_all_pages(page):
    demo = looks(DEMO)
    assert looks(page) == {name: demo[name] for name in page}


@pytest.mark.parametrize(
    "page", [DEMO, GRID, ("fedavg", "local", "mine:Patient", "mine:Patient-finetune", "scl")]
)
def test_no_two_methods_of_a_page_have_one_colour_or_one_kind_of_dashes(page):
    for one, other in combinations(looks(page).values(), 2):
        assert one[0] != other[0]
        assert one[1] != other[1]


def test_no_two_of_56_lines_are_alike():
    names = [*RECIPES, *(f"mine:Method{k}" for k in range(56 - len(RECIPES)))]
    assert len(set(looks(names).values())) == 56
    assert len(method_styles([*names, "one-more"])) == 57


def test_the_first_methods_have_colours_of_their_own():
    assert len({method_styles([name])[name]["color"] for name in FIRST}) == len(COLOURS)


def test_a_method_of_several_runs_has_one_colour_and_a_run_one_kind_of_dashes():
    names = [f"{run}/{method}" for run in "ABC" for method in DEMO]
    seen = looks(names)
    assert has_style_of_run(names)
    for method in DEMO:
        assert {seen[f"{run}/{method}"][0] for run in "ABC"} == {looks([method])[method][0]}
    for run in "ABC":
        assert len({seen[f"{run}/{method}"][1] for method in DEMO}) == 1
    assert len(set(seen.values())) == len(names)


def test_many_methods_of_several_runs_stay_distinct():
    names = [f"{run}/{method}" for run in ("A", "B1") for method in list(RECIPES)[:24]]
    assert len(set(looks(names).values())) == len(names)
    assert not has_style_of_run(names)
    assert not has_style_of_run(DEMO)
