"""Types of command line arguments, and the parser that shows their defaults."""

from argparse import ArgumentTypeError

import pytest

from experiments.config.command_line import (
    CommandLine,
    method_name,
    not_negative,
    one_of,
    positive,
    several,
)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (positive, "1", 1),
        (not_negative, "0", 0),
        (several(positive), "8, 12", (8, 12)),
        (several(one_of("part", ["a, b", "c"]), ";"), "a, b;c", ("a, b", "c")),
        (method_name(num_clusters=3), "bcfl-mht-8", "bcfl-mht-8"),
    ],
)
def test_values_are_read(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (positive, "0", "whole number of at least 1, got '0'"),
        (positive, "1.5", "whole number of at least 1, got '1.5'"),
        (not_negative, "-1", "whole number of at least 0, got '-1'"),
        (several(positive), "8,,12", "whole number of at least 1, got ''"),
        (several(positive), "8,12,8", "different values, got '8,12,8'"),
        (one_of("part", ["all", "none"]), "al", r"unknown part 'al'.*'all'.*Known: all, none"),
        (method_name(), "ifac", r"unknown method 'ifac'.*'ifca'"),
        (method_name(num_clusters=3), "fedavg", "num_clusters"),
    ],
)
def test_what_cannot_be_is_refused(read, text, message):
    with pytest.raises(ArgumentTypeError, match=message):
        read(text)


def test_arguments_may_be_left_out(capsys):
    line = CommandLine("A study.\n\nAnd more.")
    line.argument("seeds", several(not_negative), "0,1", "seeds")
    line.argument("kind", str, "one", "partition", ("one", "two"))
    line.argument("--rounds", positive, 5, "number of rounds")
    assert vars(line.parse_args([])) == {"seeds": (0, 1), "kind": "one", "rounds": 5}
    assert line.parse_args(["3", "two"]).seeds == (3,)
    for words in (["3", "three"], ["--rounds", "0"], ["3", "two", "more"]):
        with pytest.raises(SystemExit, match="2"):
            line.parse_args(words)
    text = line.format_help()
    assert "A study." in text
    assert "And more." not in text
    for default in ("0,1", "one", "5"):
        assert f"(default: {default})" in text
    assert "{one,two}" in text
