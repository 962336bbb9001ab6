"""Pages of the API reference: a table of summaries by subject, then one entry for each name."""

import inspect
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from subjects import PARTS, SUBJECTS

MODULES = tuple(module for modules in PARTS.values() for module in modules)
MANY = 8
MOST = 100
"""Letters of a value that are shown."""
OBJECT = re.compile(r"<\w+ |\bat 0x")
CLASSES = "classes"
"""Folder of the pages of classes; beside `bcfl.aggregation`, `bcfl.Aggregation` may be one file."""
OTHERS = (property, cached_property, classmethod, staticmethod)
KINDS = ("Classes", "Functions", "Errors and warnings", "Types and values", "Modules")


def module_pages(module: str) -> dict[str, str]:
    """The page of a public module, and those of its classes that have many members.

    Args:
        module: its full name.

    Returns:
        Markdown by the name of the page, the module's first.
    """
    names = public(module)
    subjects = by_subject(module)
    parts = [f"# {module}\n", f"```{{eval-rst}}\n.. automodule:: {module}\n```\n"]
    for subject, listed in subjects.items():
        rows = [f"| {_link(module, name)} | {_summary(names[name])} |" for name in listed]
        parts.append(f"**{subject}**\n\n{_table(rows)}")
    apart = {}
    for subject, listed in subjects.items():
        entries = []
        for name in listed:
            if _here(module, name) and _has_page(module, name):
                apart[f"{CLASSES}/{module}.{name}"] = f"# {name}\n\n{_entry(module, name)}"
            elif _here(module, name):
                entries.append(_entry(module, name))
        parts += [f"## {subject}\n", *entries] if entries else []
    return {module: "\n".join(parts) + (_contents(apart) if apart else "")} | apart


@cache
def public(module: str) -> dict[str, object]:
    """The public names of a module: those of `__all__`, or what it defines without underscore.

    Args:
        module: its full name.
    """
    found = import_module(module)
    own = [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module
    ]
    return {name: getattr(found, name) for name in getattr(found, "__all__", own)}


def by_subject(module: str) -> dict[str, list[str]]:
    """The public names of a module under the subjects of its page; the rest by kind.

    Args:
        module: its full name.
    """
    subjects = {title: names.split() for title, names in SUBJECTS.get(module, {}).items()}
    listed = {name for names in subjects.values() for name in names}
    rest = {
        kind: [n for n, v in public(module).items() if n not in listed and _kind(v) == kind]
        for kind in KINDS
    }
    return subjects | {kind: names for kind, names in rest.items() if names}


def api_index() -> str:
    """The contents of the reference: what each module is for."""
    parts = [
        "# API reference\n\nEvery public name with its docstring. Shapes are in parentheses; "
        "weights and entropies are in nats.\n"
    ]
    for part, modules in PARTS.items():
        rows = [f"| [`{name}`]({name}.md) | {_summary(import_module(name))} |" for name in modules]
        parts.append(f"## {part}\n\n{_table(rows)}")
    return "\n".join(parts) + _contents(MODULES)


def _contents(pages: Iterable[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])


def _table(rows: list[str]) -> str:
    return "\n".join([":::{table}", ":class: summary", "", "| | |", "|---|---|", *rows, ":::", ""])


def _kind(value: Any) -> str:  # noqa: ANN401 - any public object
    if inspect.ismodule(value):
        return "Modules"
    if inspect.isfunction(value):
        return "Functions"
    if not inspect.isclass(value) or value is Any:
        return "Types and values"
    return "Errors and warnings" if issubclass(value, BaseException) else "Classes"


def _summary(value: object) -> str:
    """The first sentence of a docstring, or a value, in Markdown."""
    if _kind(value) != "Types and values":
        return _first_sentence(value)
    text = " ".join(str(value).replace("typing.", "").split()).replace("|", "\\|")
    if hasattr(value, "__args__"):  # a type, by the last part of its names
        text = re.sub(r"\b(?:\w+\.)+(?=\w)|~", "", text)
    if OBJECT.search(text):  # of objects, which have no literal
        return _entries(value) if isinstance(value, Mapping) else f"a `{type(value).__name__}`"
    return f"`{text[:MOST]}{'...' if len(text) > MOST else ''}`"


def _entries(value: Mapping[Any, object]) -> str:
    """The keys of a mapping, the first ones of many."""
    keys = [f"`{key}`" for key in value]
    more = f" and {len(keys) - MANY} more" if len(keys) > MANY else ""
    return f"by name: {', '.join(keys[:MANY])}{more}"


def sentence_of(value: object) -> str:
    """The first sentence of the docstring of a class or function, in Markdown.

    Args:
        value: the class or function.
    """
    return _first_sentence(value)


def link_of(value: type) -> str:
    """A link to the entry of a class in the reference; its name alone where it has none.

    Args:
        value: the class.
    """
    owner = _owners().get(id(value))
    name = value.__name__
    return f"{{py:obj}}`{name} <{owner}.{name}>`" if owner else f"`{name}`"


def _first_sentence(value: object) -> str:
    first = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z0-9)`]\.)\s+(?=[A-Z`])", first)[0]
    parts = sentence.split("`")
    parts[::2] = [re.sub(r"([*_$\[\]|])", r"\\\1", text) for text in parts[::2]]
    return "`".join(parts)


@cache
def _owners() -> dict[int, str]:
    """The module whose page has the entry of an object: the first that lists it, by id."""
    owners: dict[int, str] = {}
    for module in MODULES:
        for value in public(module).values():
            owners.setdefault(id(value), module)
    return owners


def _here(module: str, name: str) -> bool:
    value = public(module)[name]
    return _kind(value) in KINDS[:3] and _owners()[id(value)] == module


def _link(module: str, name: str) -> str:
    value = public(module)[name]
    kind = _kind(value)
    if kind == "Modules":
        page = getattr(value, "__name__", "")
        return f"[`{name}`]({page}.md)" if page in MODULES else f"`{name}`"
    if kind == "Types and values":
        return f"`{name}`"
    return f"{{py:obj}}`{name} <{_owners()[id(value)]}.{name}>`"


def _entry(module: str, name: str) -> str:
    value: Any = public(module)[name]
    kind = _kind(value)
    if kind == "Functions":
        return f"```{{eval-rst}}\n.. autofunction:: {module}.{name}\n```\n"
    directive = "autoclass" if kind == "Classes" else "autoexception"
    bases = "" if value.__bases__ == (object,) else "   :show-inheritance:\n"
    entry = f".. {directive}:: {module}.{name}\n   :members:\n{bases}"
    return f"{_members(module, name)}```{{eval-rst}}\n{entry}```\n"


def _members(module: str, name: str) -> str:
    """A table of the methods and properties of a class that has many."""
    members = _members_of(public(module)[name])
    rows = [
        f"| {{py:obj}}`{member} <{module}.{name}.{member}>` | {_first_sentence(value)} |"
        for member, value in members.items()
    ]
    return f"**Methods and properties of {name}**\n\n{_table(rows)}\n" if len(rows) >= MANY else ""


def _members_of(kind: object) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(kind).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, OTHERS))
    }


def _has_page(module: str, name: str) -> bool:
    """Whether a class has a page of its own: all of `bcfl`, elsewhere those with many members."""
    value = public(module)[name]
    if _kind(value) != "Classes":
        return False
    return module == "bcfl" or len(_members_of(value)) >= MANY
