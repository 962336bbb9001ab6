"""Tables of configuration as frozen dataclasses: known keys, right types."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from experiments.config.options import check_keys

Section = TypeVar("Section")
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


class _Misfit(Exception):
    """A value that isn't of the type asked for."""


def read_section(kind: type[Section], table: object, what: str) -> Section:
    """Make a dataclass from a table of a configuration file.

    Args:
        kind: dataclass whose fields are the known keys.
        table: keys and values as TOML or JSON have them; lists serve as tuples.
        what: name of the table, for messages.

    Raises:
        ValueError: no table, an unknown key (the message has the nearest), a missing one, a value
            of another type, or one that the dataclass refuses.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"{what} must be a table of keys and values, got {table!r}")
    check_keys(what, kind, table)
    hints = get_type_hints(kind)
    values = {key: _typed(f"{key} of {what}", value, hints[key]) for key, value in table.items()}
    return kind(**values)


def _typed(what: str, value: object, hint: Any) -> Any:  # noqa: ANN401
    try:
        return _converted(value, hint)
    except _Misfit:
        raise ValueError(f"{what} must be {_in_words(hint)}, got {value!r}") from None


def _converted(value: object, hint: Any) -> Any:  # noqa: ANN401
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _first_fit(value, get_args(hint))
    if origin is Literal:
        return _required(value, isinstance(value, str) and value in get_args(hint))
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _Misfit
        return tuple(_converted(item, get_args(hint)[0]) for item in value)
    if hint is float and type(value) is int:
        return float(value)
    return _required(value, type(value) is hint)


def _first_fit(value: object, hints: tuple[Any, ...]) -> Any:  # noqa: ANN401
    for hint in hints:
        try:
            return _converted(value, hint)
        except _Misfit:
            continue
    raise _Misfit


def _required(value: object, fits: bool) -> object:
    if not fits:
        raise _Misfit
    return value


def _in_words(hint: Any) -> str:  # noqa: ANN401
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_in_words(one) for one in inner if one is not NoneType)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is tuple:
        return f"a list, each of it {_in_words(inner[0])}"
    return WORDS.get(hint, str(hint))
