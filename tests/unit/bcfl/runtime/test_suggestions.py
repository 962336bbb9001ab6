"""Suggestions in messages on unknown names."""

import pytest

from bcfl import methods
from bcfl.policies import FedAvg
from bcfl.runtime import as_given, check_name, counted, nearest, nearest_name
from bcfl.trackers import Greedy

NAMES = ["ifca", "bcfl-mht-8", "client-07", "client-37", "Client-a"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("IFCA", "ifca"),
        ("bcfl-mth-8", "bcfl-mht-8"),
        ("client-7", "client-07"),
        ("client-007", "client-07"),
        ("client-A", "Client-a"),
        (7, None),
        ("something else", None),
    ],
)
def test_the_nearest_name_is_suggested(name, near):
    assert nearest_name(name, NAMES) == near
    assert nearest(name, NAMES) == ("" if near is None else f" Did you mean {near!r}?")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (methods.ifca, "the function ifca; call it: methods.ifca(num_clusters=...)"),
        (methods.fedavg, "the function fedavg; call it: methods.fedavg()"),
        (methods.with_sharing, "the function with_sharing; call it: methods.with_sharing(method)"),
        (Greedy, "the class Greedy; call it: Greedy()"),
        (FedAvg, "the class FedAvg; call it: FedAvg(objective)"),
        (lambda: 3, "the function <lambda>; call it, and give what it returns"),
        ([].append, "the function append; call it: append(object)"),
        (3, "3"),
    ],
)
def test_what_was_not_called_is_shown_with_its_call(value, told):
    assert as_given(value) == told


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 hypotheses"), (1, "1 hypothesis"), (1234, "1,234 hypotheses")]
)
def test_numbers_of_things(number, text):
    assert counted(number, "hypothesis", "hypotheses") == text
    assert counted(number, "round") == text.replace("hypotheses", "rounds").replace(
        "hypothesis", "round"
    )


def test_names_are_text():
    check_name("model", "mlp")
    with pytest.raises(TypeError, match="name of a model must be text, got 3"):
        check_name("model", 3)
