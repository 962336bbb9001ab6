"""Signatures and docstrings of the package, read from its source and not imported.

Partitions and models need torch, which takes seconds to load.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from bcfl.methods import Option

ROOT = Path(__file__).parents[2]
PACKAGES = ("experiments", "bcfl", "posteriors", "assignment")


@dataclass(frozen=True)
class Definition:
    """A top-level definition of a module.

    Attributes:
        module: full name of the module.
        node: function, class or value; the statement, for what is imported from elsewhere.
    """

    module: str
    node: ast.AST

    @property
    def text(self) -> str:
        """The docstring."""
        if not isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            return ""
        return ast.get_docstring(self.node) or ""

    @property
    def summary(self) -> str:
        """First sentence of the docstring, without the full stop."""
        return sentence(self.text)

    def options(self) -> dict[str, Option]:
        """Parameters of a function, or fields of a class, with types, defaults and descriptions."""
        texts = described(self.text)
        parts = self._parameters() if isinstance(self.node, ast.FunctionDef) else self._fields()
        return {
            name: Option(
                name=name,
                hint=value(hint, self.module),
                default=None if default is None else value(default, self.module),
                description=texts.get(name, ""),
                source="required" if default is None else "",
            )
            for name, hint, default in parts
        }

    def entries(self) -> dict[str, Definition]:
        """Values of a table by name, such as functions."""
        assert isinstance(self.node, ast.Dict)
        pairs = zip(self.node.keys, self.node.values, strict=True)
        return {
            str(key.value): definition(self.module, node.id)
            for key, node in pairs
            if isinstance(key, ast.Constant) and isinstance(node, ast.Name)
        }

    def _parameters(self) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
        assert isinstance(self.node, ast.FunctionDef)
        given = self.node.args
        usual = [*given.posonlyargs, *given.args]
        without: list[ast.expr | None] = [None] * (len(usual) - len(given.defaults))
        defaults = [*without, *given.defaults, *given.kw_defaults]
        for argument, default in zip([*usual, *given.kwonlyargs], defaults, strict=True):
            if argument.annotation is not None:
                yield argument.arg, argument.annotation, default

    def _fields(self) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
        assert isinstance(self.node, ast.ClassDef)
        for entry in self.node.body:
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                yield entry.target.id, entry.annotation, entry.value


def definition(module: str, name: str) -> Definition:
    """Where a name of a module is defined, in it or in another one of the packages.

    Args:
        module: full name of the module.
        name: of a function, class or value.
    """
    node = _definitions(module)[name]
    if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
        return definition(str(node.module), name)
    return Definition(module, node)


def value(node: ast.AST, module: str) -> Any:  # noqa: ANN401 - any value or type
    """The value of an expression, such as a default or the type of an argument.

    Args:
        node: the expression.
        module: full name of the module in which it stands.
    """
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    known = {name: _named(name, module) for name in names if not hasattr(builtins, name)}
    expression = ast.Expression(node)  # type: ignore[arg-type] # definitions of names are
    return eval(compile(expression, module, "eval"), known)


def _named(name: str, module: str) -> Any:  # noqa: ANN401
    found = definition(module, name)
    if isinstance(found.node, ast.ImportFrom):
        return getattr(import_module(str(found.node.module)), name)
    return Any if isinstance(found.node, ast.ClassDef) else value(found.node, found.module)


@cache
def _definitions(module: str) -> Mapping[str, ast.AST]:
    """Nodes of the functions, classes, values and imported names of a module."""
    place = ROOT.joinpath(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    found: dict[str, ast.AST] = {}
    for entry in ast.parse(path.read_text("utf-8")).body:
        found.update(_of_statement(entry))
    return found


def _of_statement(entry: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(entry, ast.FunctionDef | ast.ClassDef):
        yield entry.name, entry
    elif isinstance(entry, ast.ImportFrom):
        yield from ((alias.name, entry) for alias in entry.names)
    elif isinstance(entry, ast.Assign | ast.AnnAssign) and entry.value is not None:
        targets = entry.targets if isinstance(entry, ast.Assign) else [entry.target]
        yield from ((name.id, entry.value) for name in targets if isinstance(name, ast.Name))


def described(text: str) -> dict[str, str]:
    """Descriptions of arguments or attributes in a Google docstring, by name.

    Args:
        text: the docstring.
    """
    section = re.search(r"\n(?:Args|Attributes):\n(.*?)(\n\w+:\n|\Z)", text, re.DOTALL)
    entries = r"^ {4}\*{0,2}(\w+): (.*?)(?=^ {4}[\w*]|\Z)"
    found = re.findall(entries, section[1] + "\n", re.DOTALL | re.M) if section else []
    return {name: " ".join(said.split()) for name, said in found}


def sentence(text: str) -> str:
    """First sentence of a docstring, without the full stop.

    Args:
        text: the docstring.
    """
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z0-9)`])\.\s", first)[0].removesuffix(".")
