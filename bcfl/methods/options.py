"""Options of methods, read from the signatures and docstrings of their recipes.

Neither this module nor the signatures need torch, so an unknown name is reported at once.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from bcfl.methods.choices import OTHER_NAMES, TRAINING
from bcfl.runtime.suggestions import nearest

NOTHING = "none"
"""None in a configuration file, which has no null."""
OBJECTIVE = "objective"
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


class UnknownOptionError(ValueError):
    """An option that a method does not have."""


class Misfit(Exception):
    """A value of another type than the option's."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a method.

    Attributes:
        name: keyword of the recipe.
        hint: type of the value.
        default: value if it is not given.
        description: one sentence.
        source: source of the default; empty where it is ours.
    """

    name: str
    hint: Any
    default: Any
    description: str = ""
    source: str = ""

    @property
    def allowed(self) -> str:
        """The type in words."""
        return in_words(self.hint)

    def read(self, value: object, method: str) -> Any:  # noqa: ANN401 - of the hint's type
        """A value of the type that the recipe takes.

        Args:
            value: from Python, TOML or JSON; the text none is None, lists are tuples.
            method: name of the method, for the message.

        Raises:
            ValueError: it is of another type, or not among the allowed ones.
        """
        return typed(f"{self.name} of {method}", value, self.hint)


def options_of(
    function: Callable[..., Any], group: Callable[..., Any] | None, fixed: Iterable[str] = ()
) -> dict[str, Option]:
    """Options of a recipe by name.

    Args:
        function: the recipe; its keyword-only parameters are options.
        group: function whose parameters the recipe passes on, as far as the typed dictionary
            behind its `**` names them.
        fixed: parameters that are no options.
    """
    own = inspect.signature(function).parameters.values()
    parameters = {p.name: p for p in own if p.kind is p.KEYWORD_ONLY}
    passed = next((get_args(p.annotation)[0] for p in own if p.kind is p.VAR_KEYWORD), None)
    if passed is not None and group is not None:
        source = inspect.signature(group).parameters
        parameters |= {key: source[key] for key in passed.__annotations__ if key in source}
    texts = {**(documented(group) if group else {}), **documented(function)}
    kept = {name: p for name, p in parameters.items() if name not in {OBJECTIVE, *fixed}}
    return {name: _option(p, texts.get(name, "")) for name, p in kept.items()}


def _option(parameter: inspect.Parameter, text: str) -> Option:
    description, _, source = text.partition(" Default: ")
    return Option(
        name=parameter.name,
        hint=parameter.annotation,
        default=parameter.default,
        description=description,
        source=source.removesuffix("."),
    )


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """Descriptions of the arguments in a Google docstring."""
    section = re.search(r"\nArgs:\n(.*?)(\n\w+:\n|\Z)", inspect.getdoc(function) or "", re.DOTALL)
    if section is None:
        return {}
    entries = re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", section[1] + "\n", re.DOTALL | re.M)
    return {name: " ".join(text.split()) for name, text in entries}


def with_options(function: Callable[..., Any], options: Mapping[str, Option]) -> str | None:
    """The docstring of a function, with all of its options among the arguments.

    Values that have names are listed; defaults and types are those of the signature.

    Args:
        function: recipe or combinator, whose docstring may describe some of them.
        options: all of them, by name.
    """
    text = inspect.getdoc(function)
    if text is None:
        return None
    own = documented(function)
    before = {name: said for name, said in own.items() if name not in options}
    entries = before | {name: _told(option) for name, option in options.items()}
    wrapper = textwrap.TextWrapper(
        92, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False
    )
    lines = [wrapper.fill(f"{name}: {said}") for name, said in entries.items()]
    head, _, rest = text.partition("\nArgs:\n")
    after = re.search(r"\n\n\w+:\n.*", rest, re.DOTALL)
    return "\n".join([head.rstrip(), "", "Args:", *lines]) + (after[0] if after else "")


def _told(option: Option) -> str:
    """Description, values with names, and the default with its source."""
    parts = [option.description]
    if _texts(option.hint):
        parts.append(f"Allowed: {option.allowed}.")
    if option.source:
        parts.append(f"Default: {option.default!r}; {option.source}.")
    return " ".join(parts)


def checked(
    method: str,
    options: Mapping[str, Option],
    values: Mapping[str, Any],
    others: Iterable[tuple[str, Option]] = (),
) -> dict[str, Any]:
    """Values of the right types for options that a method has.

    Args:
        method: its name, for messages.
        options: those that it has.
        values: values by option; `objective` is passed through.
        others: methods by name with an option each, read where an option is unknown or a text is
            no value of it.

    Raises:
        UnknownOptionError: the method has no such option; the message names those it has.
        ValueError: a value is of another type.
    """
    known = [*options, OBJECTIVE]
    for name in values:
        if name not in known:
            hint = _of_training(name) or nearest(name, known)
            fits = f"methods.applicable({method!r}, options) keeps those that this one has"
            raise UnknownOptionError(
                f"method {method!r} has no option {name!r}.{hint} "
                f"It has: {', '.join(sorted(known))}"
                + (
                    f". Other methods have it: {fits}"
                    if any(o.name == name for _, o in others)
                    else ""
                )
            )
    return {
        name: value if name == OBJECTIVE else _read(options[name], value, method, others)
        for name, value in values.items()
    }


def _read(option: Option, value: object, method: str, others: Iterable[tuple[str, Option]]) -> Any:  # noqa: ANN401
    """A value of an option; where it is a text that other methods take, the error names one."""
    try:
        return option.read(value, method)
    except ValueError as error:
        for other, its in others if isinstance(value, str) else ():
            if its.name == option.name and value in _texts(its.hint):
                raise ValueError(f"{error}; {other} takes {value!r}") from None
        raise


def _of_training(name: str) -> str:
    """A hint at the field of local training that an unknown option is meant for, if it is."""
    field = OTHER_NAMES.get(name, name)
    if field not in TRAINING:
        return ""
    python = f"{OBJECTIVE}=Objective({field}=...)"
    return f" It is one of local training: {python}, in scenarios {OBJECTIVE}.{field}."


def typed(what: str, value: object, hint: Any) -> Any:  # noqa: ANN401 - any type
    """A value of a type, converted from TOML, JSON or numpy.

    Args:
        what: name of the value, for the message.
        value: the value.
        hint: the type.

    Raises:
        ValueError: the value does not fit.
    """
    try:
        return _converted(value, hint)
    except Misfit:
        near = nearest(value, _texts(hint)) if isinstance(value, str) else ""
        message = f"{what} must be {in_words(hint)}, got {value!r}"
        raise ValueError(f"{message}.{near}" if near else message) from None


def _texts(hint: Any) -> list[str]:  # noqa: ANN401
    """The texts among the values of a type."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [text for inner in get_args(hint) for text in _texts(inner)]


def _converted(value: object, hint: Any) -> Any:  # noqa: ANN401
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _first_fit(value, get_args(hint))
    if origin is tuple:
        return _tuple(value, get_args(hint))
    if origin is Literal:
        return _required(value, isinstance(value, str) and value in get_args(hint))
    return _scalar(value, hint)


def _scalar(value: object, hint: Any) -> object:  # noqa: ANN401 - any type
    if hint in (Any, inspect.Parameter.empty) or isinstance(hint, str):
        return value  # of an object of one's own, which checks it itself
    if hint is NoneType:
        return _required(None, value is None or value == NOTHING)
    if hint is float and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return _required(value, type(value) is hint)


def _tuple(value: object, hints: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise Misfit
    if hints[-1] is Ellipsis:
        return tuple(_converted(item, hints[0]) for item in value)
    if len(value) != len(hints):
        raise Misfit
    return tuple(_converted(item, hint) for item, hint in zip(value, hints, strict=True))


def _first_fit(value: object, hints: tuple[Any, ...]) -> Any:  # noqa: ANN401
    for hint in hints:
        try:
            return _converted(value, hint)
        except Misfit:
            continue
    raise Misfit


def _required(value: object, fits: bool) -> object:
    if not fits:
        raise Misfit
    return value


def in_words(hint: Any) -> str:  # noqa: ANN401 - any type
    """A type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(in_words(member) for member in inner)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is Sequence or (origin is tuple and inner[-1] is Ellipsis):
        return f"a list, each of it {in_words(inner[0])}"
    if origin is tuple:
        kinds = [in_words(member) for member in inner]
        alike = len(set(kinds)) == 1
        return f"a list of {f'{len(kinds)}, each of it {kinds[0]}' if alike else ', '.join(kinds)}"
    if hint in (Any, inspect.Parameter.empty):
        return "any value"
    return NOTHING if hint is NoneType else WORDS.get(hint, str(hint))
