"""Command lines of studies and examples: their arguments, and types that refuse what cannot be.

An argument that is refused ends the program with status 2 and a message before any work starts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from bcfl.methods import build
from experiments.config.options import chosen

Value = TypeVar("Value")


class CommandLine(argparse.ArgumentParser):
    """Parser whose help has the first line of a docstring, and the default of each argument.

    Args:
        docstring: of a module.
    """

    def __init__(self, docstring: str | None) -> None:
        super().__init__(description=(docstring or "").partition("\n")[0])

    def argument(
        self,
        name: str,
        read: Callable[[str], object],
        default: object,
        what: str,
        choices: Iterable[object] | None = None,
    ) -> None:
        """Add an argument that may be left out.

        Args:
            name: with hyphens where it is an option; else it is known by its position.
            read: type of the argument; it also reads a default that is a text.
            default: value if it is left out.
            what: description, for the help.
            choices: allowed values; None is all that `read` reads.
        """
        options: dict[str, Any] = {} if name.startswith("-") else {"nargs": "?"}
        if choices is not None:
            options["choices"] = [*choices]
        text = f"{what} (default: %(default)s)"
        self.add_argument(name, type=read, default=default, help=text, **options)


def positive(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    return _whole(text, 1)


def not_negative(text: str) -> int:
    """A whole number of at least 0, such as a seed.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least {least}, got {text!r}"
        )
    return int(text)


def accepted(check: Callable[[str], object]) -> Callable[[str], str]:
    """Type of a text for which a check raises no ValueError; else its message is shown.

    Args:
        check: called with the text.
    """

    def text_of(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text

    return text_of


def method_name(**options: Any) -> Callable[[str], str]:  # noqa: ANN401 - checked by the method
    """Type of the name of a method.

    Args:
        options: with which it must be possible to build the method.
    """
    return accepted(partial(build, **options))


def one_of(what: str, known: Iterable[str]) -> Callable[[str], str]:
    """Type of one of several names.

    Args:
        what: such as `split`, for the message.
        known: the names.
    """
    return accepted(partial(chosen, what, builders=dict.fromkeys(known)))


def several(
    read: Callable[[str], Value], separator: str = ","
) -> Callable[[str], tuple[Value, ...]]:
    """Type of several different values with a separator between them.

    Args:
        read: type of one value.
        separator: between two values.
    """

    def values_of(text: str) -> tuple[Value, ...]:
        values = tuple(read(part.strip()) for part in text.split(separator))
        if len(set(values)) < len(values):
            raise argparse.ArgumentTypeError(f"must be different values, got {text!r}")
        return values

    return values_of
