"""Driving a generator by hand: answers by a function or a mapping, silence, and no answers."""

import pytest

import bcfl
from bcfl import Objective
from bcfl.policies import FedAvg
from bcfl.protocol.requests import Exchange


def sums(*rounds):
    """A generator that requests each of `rounds` and returns the sums of what was answered."""
    totals = []
    for requests in rounds:
        replies = yield Exchange(tuple(requests), {})
        totals.append(sum(replies.values()))
    return totals


def test_a_function_answers_each_request_and_the_exchanges_are_returned():
    result, exchanges = bcfl.drive(sums("ab", "c"), ord, return_exchanges=True)
    assert result == [ord("a") + ord("b"), ord("c")]
    assert [exchange.requests for exchange in exchanges] == [("a", "b"), ("c",)]


def test_requests_without_an_answer_are_unanswered():
    assert bcfl.drive(sums("ab", "c"), {"a": 3}) == [3, 0]
    assert bcfl.drive(sums("ab"), lambda request: 2 if request == "b" else None) == [2]


def test_a_generator_without_requests_needs_no_answers():
    assert bcfl.drive(sums()) == []
    assert bcfl.drive(sums(), return_exchanges=True) == ([], [])


def test_a_request_without_any_answers_is_an_error():
    with pytest.raises(ValueError, match="answers must be given: the generator requests"):
        bcfl.drive(sums("a"))


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (
            FedAvg(Objective()).associate,
            r"the function associate; call it: associate\(hypothesis, ",
        ),
        (3, "3"),
    ],
)
def test_what_is_no_generator_is_refused(steps, told):
    with pytest.raises(TypeError, match=rf"steps must be a generator, .*, got {told}"):
        bcfl.drive(steps)
