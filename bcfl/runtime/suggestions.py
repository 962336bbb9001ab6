"""What messages say of a number of things, an unknown name, and an argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import zip_longest
from reprlib import repr as shortened


def counted(number: int, noun: str, plural: str = "") -> str:
    """Number with noun in singular or plural, such as `1 round` or `25 rounds`.

    Args:
        number: the number.
        noun: noun in singular.
        plural: in plural, where it is not that with an `s`.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def check_name(what: str, name: object) -> None:
    """Check that the name of a method, data set, partition or model is text.

    Args:
        what: what has the name, such as `method`.
        name: it.

    Raises:
        TypeError: it is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"name of a {what} must be text, got {shortened(name)}")


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


def as_given(value: object) -> str:
    """An argument, cut short; a class or function by its name, with the call that may be missing.

    Args:
        value: an argument of any type.
    """
    kind = "class" if isinstance(value, type) else "function"
    if not isinstance(value, type) and not inspect.isroutine(value):
        return shortened(value)
    name = value.__name__
    if not name.isidentifier():  # a lambda
        return f"the function {name}; call it, and give what it returns"
    group = "methods." if str(value.__module__).startswith("bcfl.methods.") else ""
    return f"the {kind} {name}; call it: {group}{name}({_needed(value)})"


def described(value: object) -> str:
    """Type of an argument for errors; arrays by shape and dtype, other values cut short.

    Args:
        value: an argument of any type.
    """
    kind = type(value).__name__
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape:
        of = "" if dtype is None else f", {dtype}"
        return f"a {kind} of shape {tuple(shape)}{of}"
    if isinstance(value, tuple | list) and any(hasattr(each, "shape") for each in value[:3]):
        return f"a {kind} of {', '.join(map(described, value[:3]))}"
    return f"{shortened(value)} ({kind})"


def _needed(function: Callable[..., object]) -> str:
    """Arguments of a call that have no default, and the number of clusters, which most choose."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some classes and functions in C
        return "..."
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [
        f"{p.name}=..." if p.kind is p.KEYWORD_ONLY or p.name == "num_clusters" else p.name
        for p in named
        if p.default is p.empty or p.name == "num_clusters"
    ]
    return ", ".join(needed)


def _form(name: str) -> str:
    return re.sub(r"\d+", lambda digits: str(int(digits[0])), name.casefold())


def first_difference(names_of: Mapping[str, Sequence[str]]) -> str:
    """Where names of classes differ, such as `class 3 is 'cat' in training and 'dog' in test`.

    Args:
        names_of: names by part, not all of which are equal.
    """
    (first, names), *others = names_of.items()
    other, different = next(item for item in others if item[1] != names)
    pairs = enumerate(zip_longest(names, different))
    number, (one, another) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    shown = ["none" if name is None else repr(name) for name in (one, another)]
    return f"class {number} is {shown[0]} in {first} and {shown[1]} in {other}"
