import doctest
import inspect

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
