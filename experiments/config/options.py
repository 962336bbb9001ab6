"""Validation of names, keys and whole numbers in configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, get_origin, get_type_hints

from bcfl.methods import typed
from bcfl.runtime import nearest

Built = TypeVar("Built")


def chosen(what: str, name: str, builders: Mapping[str, Built]) -> Built:
    """The builder of a name.

    Args:
        what: kind of thing, for the message.
        name: name to look up.
        builders: builders by name.

    Raises:
        ValueError: the name is unknown; the message has the nearest and all known ones.
    """
    if name not in builders:
        raise ValueError(
            f"unknown {what} {name!r}.{nearest(name, builders)} Known: {', '.join(builders)}"
        )
    return builders[name]


def check_keys(
    what: str,
    builder: Callable[..., Any],
    config: Mapping[str, Any],
    also: Collection[str] = (),
    without: Collection[str] = (),
) -> None:
    """Check configuration against the arguments of a builder.

    Args:
        what: the thing that is built, for the message.
        builder: function whose keyword arguments are the known keys.
        config: keys and values to check.
        also: more known keys.
        without: arguments of the builder that are no keys.

    Raises:
        ValueError: a key is unknown, or a required one is missing.
    """
    known = [key for key in (*named_arguments(builder), *also) if key not in without]
    for key in config:
        if key not in known:
            raise ValueError(
                f"{what} has no option {key!r}.{nearest(key, known)} Known: {', '.join(known)}"
            )
    required = [
        name
        for name, parameter in named_arguments(builder).items()
        if parameter.default is inspect.Parameter.empty and name not in config
    ]
    if required:
        raise ValueError(f"{what} lacks {', '.join(required)}")


def typed_options(config: Mapping[str, Any], *kinds: object) -> dict[str, Any]:
    """Configuration with values of the annotated types; lists become tuples.

    Args:
        config: keys and values.
        kinds: functions and dataclasses that annotate the keys. Sequences of any kind are not
            checked.

    Raises:
        ValueError: a value is of another type.
    """
    hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
    return {
        key: value
        if key not in hints or get_origin(hints[key]) is Sequence
        else typed(key, value, hints[key])
        for key, value in config.items()
    }


def named_arguments(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Parameters that can be given by keyword."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(builder).parameters
    return {name: p for name, p in parameters.items() if p.kind in kinds}
