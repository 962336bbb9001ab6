import doctest
import inspect
import re
from pathlib import Path

import assignment


def test_the_example_in_the_package_docstring_is_true():
    outcome = doctest.testmod(assignment)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_everything_exported_is_documented():
    for name in assignment.__all__:
        exported = getattr(assignment, name)
        if inspect.isfunction(exported) or inspect.isclass(exported):
            assert exported.__doc__, name


def test_the_page_names_what_there_is():
    page = (Path(__file__).parents[3] / "docs" / "assignment.md").read_text()
    called = set(re.findall(r"`([a-z_]+)\(", page))
    assert called <= set(assignment.__all__)
    assert {"best_assignment", "m_best_assignments", "association_marginals"} <= called
    named = set(re.findall(r"^\| `([a-z]+)` \|", page, flags=re.MULTILINE))
    assert set(assignment.SOLVERS) - {"auto"} <= named


def test_signatures_name_their_types_in_short():
    for name in assignment.__all__:
        exported = getattr(assignment, name)
        if inspect.isfunction(exported):
            shown = str(inspect.signature(exported))
            assert "_NestedSequence" not in shown, name
            assert len(shown) < 400, name
    assert "ArrayLike" in str(inspect.signature(assignment.m_best_assignments))
