"""Errors of the work for one client become its failure; refusals of a method do not."""

import pytest

from bcfl.executors.attempts import MAX_MESSAGE_LENGTH, attempted
from bcfl.protocol.answers import Failure
from posteriors import UnsupportedFitError, UnsupportedLayerError


def raising(error):
    raise error


def test_a_result_is_passed_on():
    assert attempted(divmod, 7, 2) == (3, 1)
    assert attempted(sorted, [1, 2], reverse=True) == [2, 1]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no\n  numbers"), "ValueError: no numbers"),
        (SystemExit(), "SystemExit()"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyError("k"), "KeyError: 'k'"),
        (ArithmeticError(), "ArithmeticError()"),
        (ValueError("x" * 1000), "ValueError: " + MAX_MESSAGE_LENGTH * "x"),
    ],
)
def test_an_error_is_a_failure_in_one_line(error, text):
    place = f"test_attempts.py:{raising.__code__.co_firstlineno + 1} in raising"
    assert attempted(raising, error) == Failure("crashed", f"{text}, at {place}", place)


def test_an_error_of_the_library_has_no_place_of_the_users():
    found = attempted(divmod, 1, 0)
    assert found.text.startswith("ZeroDivisionError: ")
    assert (found.place, found.error) == ("", None)


@pytest.mark.parametrize("error", [OSError("full"), MemoryError(), SystemExit()])
def test_an_error_of_the_machine_is_no_fault_of_the_code(error):
    assert attempted(raising, error).error is None


def test_a_fault_is_kept_with_its_traceback_but_not_with_local_variables():
    error = KeyError("k")
    found = attempted(raising, error)
    assert found.error is error
    assert error.__traceback__.tb_next.tb_frame.f_locals == {}


@pytest.mark.parametrize("kind", [UnsupportedFitError, UnsupportedLayerError, KeyboardInterrupt])
def test_refusals_and_interruptions_are_raised(kind):
    with pytest.raises(kind):
        attempted(raising, kind("not so"))
