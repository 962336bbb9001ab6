"""The API reference has every public name once, with a signature that can be read."""

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import bcfl
from bcfl.trackers import Greedy
from tests.contract.documentation.places import documented


def test_the_reference_has_every_public_package_of_bcfl(reference):
    folders = {path.parent.name for path in Path(bcfl.__file__).parent.glob("*/__init__.py")}
    assert {f"bcfl.{folder}" for folder in folders} <= set(reference.MODULES)


def test_the_reference_lists_every_public_name_once_with_its_summary(reference):
    entries = []
    for module in reference.MODULES:
        page, *others = reference.module_pages(module).values()
        for each in (page, *others):
            entries += re.findall(r"auto(?:class|function|exception):: (\S+)", each)
        listed = [name for names in reference.by_subject(module).values() for name in names]
        assert sorted(listed) == sorted(reference.public(module)), module
        for name in listed:
            row = re.search(rf"^\| \S*`{name}\b.*\| (.*) \|$", page, flags=re.MULTILINE)
            assert row, f"{module}.{name} is in no table"
            assert row[1], f"{module}.{name} has no docstring"
    objects = [
        getattr(importlib.import_module(m), n) for m, _, n in (e.rpartition(".") for e in entries)
    ]
    assert len({id(each) for each in objects}) == len(objects)


def test_the_reference_shows_no_place_in_memory(reference):
    for module in reference.MODULES:
        for page in reference.module_pages(module).values():
            assert not re.search(r"<function|<class|<built-in|\bat 0x", page), module


def test_signatures_of_the_reference_can_be_taken_apart(generated, reference):
    """Else Sphinx prints them on one line, with the full name of every module."""
    signatures = importlib.import_module("signatures")
    for name, value in documented(reference).items():
        if callable(value):
            with contextlib.suppress(ValueError):  # of classes without a signature
                text = signatures.readable(str(inspect.signature(value)), value)
                assert signatures.is_python(text), (name, text)
                assert "lambda" not in text, name


def test_defaults_of_signatures_are_what_factories_make_and_names(generated):
    signatures = importlib.import_module("signatures")

    @dataclass(kw_only=True)
    class Example:
        clock: Callable[[], float] = monotonic
        by_name: dict[str, int] = field(default_factory=dict)
        tracker: object = field(default_factory=Greedy)
        drawn: object = field(default_factory=object)
        done: Callable[[], None] = lambda: None

    assert signatures.readable(str(inspect.signature(Example)), Example) == (
        "(*, clock: collections.abc.Callable[[], float] = monotonic, "
        "by_name: dict[str, int] = {}, tracker: object = Greedy(), drawn: object = object(), "
        "done: collections.abc.Callable[[], None] = ...) -> None"
    )
    assert not signatures.is_python("(a = <factory>)")
