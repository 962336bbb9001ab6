"""Suggestions in messages on unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[str]) -> str:
    """A hint at the known name most similar to an unknown one; empty where none is similar.

    Args:
        name: the unknown name.
        known: names to compare it to.
    """
    near = nearest_name(name, known)
    return "" if near is None else f" Did you mean {near!r}?"


def nearest_name(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most similar to an unknown one; None where none is similar.

    Upper and lower case are alike, and so are numbers with and without leading zeros.

    Args:
        name: the unknown name.
        known: names to compare it to.
        cutoff: least similarity, from 0 to 1.
    """
    by_form: dict[str, str] = {}
    for one in known:
        by_form.setdefault(_form(one), one)
    form = _form(str(name))
    close = [form] if form in by_form else get_close_matches(form, by_form, n=1, cutoff=cutoff)
    return by_form[close[0]] if close else None


def _form(name: str) -> str:
    return re.sub(r"\d+", lambda digits: str(int(digits[0])), name.casefold())
