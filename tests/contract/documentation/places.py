"""Pages of the documentation, and public names with a docstring."""

import importlib
import inspect
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
MEASURED = ROOT / "experiments"
GENERATED = ("results.md", "references.md", "api", "methods", "studies", "tables")
BUILT = {DOCS / name for name in GENERATED}
WRITTEN = [page for page in DOCS.rglob("*.md") if BUILT.isdisjoint([page, *page.parents])]
RESULTS = [MEASURED / "RESULTS.md", *MEASURED.glob("results/**/*.md")]
PAGES = sorted([*ROOT.glob("*.md"), *WRITTEN, *RESULTS])


def documented(reference):
    """Public modules, classes, functions and methods with a docstring, by their full names."""
    found = {}
    for module in reference.MODULES:
        found[module] = importlib.import_module(module)
        for name, value in reference.public(module).items():
            found.setdefault(f"{module}.{name}", value)
            members = vars(value).items() if inspect.isclass(value) else ()
            found |= {f"{module}.{name}.{k}": v for k, v in members if not k.startswith("_")}
    first = {id(value): name for name, value in reversed(found.items()) if has_text(value)}
    return {name: found[name] for name in reversed(first.values())}


def has_text(value):
    method = inspect.isroutine(value) or isinstance(value, property | cached_property)
    return (inspect.ismodule(value) or inspect.isclass(value) or method) and value.__doc__


def name_of(page):
    return str(page.relative_to(ROOT).with_suffix(""))


def exists(name):
    """Whether a dotted name is a module, or reached from one by attributes or fields."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False
