"""Suggestions in messages on unknown names."""

import pytest

from bcfl.runtime import nearest, nearest_name

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
