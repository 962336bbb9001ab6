"""Signatures of the API reference as Python that Sphinx can take apart, with a link for each type.

A default that has no literal, such as `<factory>` of a data class, would make it print the whole
signature as text on one line.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter, isclass, signature
from typing import Any

FACTORY = "<factory>"
LATER = "..."
"""Stands for a default that has neither a literal nor a name."""
NAMED = re.compile(r"<(?:built-in |bound )?(?:function|method|class) '?((?:[\w.]|<\w+>)+)'?[^<>]*>")


def readable(text: str, value: object) -> str:
    """A signature with the names of functions, and what factories make, as defaults.

    Args:
        text: the signature as it would be printed.
        value: the class or function.
    """
    for name in _of_factories(value) if FACTORY in text else ():
        made = _made(value, name)
        before, parameter, after = re.split(rf"(\b{name}\b[^=]*=\s*{FACTORY})", text, maxsplit=1)
        text = before + parameter.replace(FACTORY, made) + after
    return NAMED.sub(lambda found: _name(found[1]), text)


def is_python(text: str) -> bool:
    """Whether a signature can be taken apart.

    Args:
        text: the signature, from its first parenthesis.
    """
    try:
        ast.parse(f"def function{text}: ...")
    except SyntaxError:
        return False
    return True


def _of_factories(value: object) -> list[str]:
    if not (isclass(value) and is_dataclass(value)):
        return []
    parameters = signature(value).parameters.values()
    return [p.name for p in parameters if p.default is not Parameter.empty and _is_factory(p)]


def _is_factory(parameter: Parameter) -> bool:
    return repr(parameter.default) == FACTORY


def _made(value: Any, name: str) -> str:  # noqa: ANN401 - any data class
    factory: Any = next(field.default_factory for field in fields(value) if field.name == name)
    if isclass(factory) and not issubclass(factory, dict | list | set | tuple | frozenset):
        return f"{factory.__name__}()"
    made = factory()
    if isinstance(made, Mapping) and not made:
        return "{}"
    return repr(made) if _is_literal(made) else LATER


def _is_literal(value: object) -> bool:
    try:
        ast.literal_eval(repr(value))
    except (SyntaxError, ValueError):
        return isinstance(value, set | frozenset) and not value
    return True


def _name(path: str) -> str:
    last = path.rpartition(".")[2]
    return last if last.isidentifier() else LATER
