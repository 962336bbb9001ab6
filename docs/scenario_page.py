"""The page of scenario files: sections, keys, and the names that they take, from the code.

The page is in the repository; `make docs` and `python docs/scenario_page.py` write it anew.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_type_hints

from bcfl import methods
from experiments.config.components import OF_THE_DATA, models, partitions, split_options
from experiments.config.scenario import SECTIONS, Scenario
from experiments.config.source import described
from experiments.config.tables import Rules
from experiments.datasets.built_in import BUILT_IN
from experiments.datasets.known import KNOWN

TEXT = Path(__file__).parent / "scenario_files.txt"
TOP = ("name", "description", "methods", "seeds")
MOST = 3
"""Methods that are named beside an option."""
HEAD = "| key | value | default | meaning |\n|---|---|---|---|\n"


def scenario_page() -> str:
    """The page, from its text with tables in place of the names in double braces."""
    tables = {
        "top": _section(Scenario, TOP),
        "datasets": _datasets(),
        "federation": _section(Rules, [f.name for f in fields(Rules) if f.name != "options"]),
        "method options": _method_options(),
        "partitions": _partitions(),
        "shared options": _options(split_options().values()),
        "models": _models(),
        **{name: _section(kind) for name, kind in SECTIONS.items()},
    }
    return re.sub(r"\{\{(.*?)\}\}", lambda found: tables[found[1]], TEXT.read_text("utf-8"))


def _section(kind: type, names: Iterable[str] | None = None) -> str:
    """A table of the keys of a dataclass; those of these names only."""
    hints, said = get_type_hints(kind), described(_plain(kind.__doc__ or ""))
    rows = []
    for entry in fields(kind):
        if names is None or entry.name in names:
            allowed = methods.Option(name=entry.name, hint=hints[entry.name], default=None).allowed
            default = entry.default
            if default is MISSING:
                default = "the name of the file" if entry.name == "name" else "required"
                rows.append((entry.name, allowed, default, said[entry.name]))
            else:
                rows.append((entry.name, allowed, _toml(default), said[entry.name]))
    return HEAD + "\n".join(map(_row, rows))


def _plain(docstring: str) -> str:
    """A docstring without the indentation of its lines."""
    return "\n".join(line.removeprefix("    ") for line in docstring.splitlines())


def _row(cells: Iterable[str]) -> str:
    name, *rest = cells
    return f"| `{name}` | {' | '.join(cell.replace('|', chr(92) + '|') for cell in rest)} |"


def _toml(value: object) -> str:
    return f"`{json.dumps(methods.NOTHING if value is None else value, ensure_ascii=False)}`"


def _options(options: Iterable[methods.Option]) -> str:
    return HEAD + "\n".join(
        _row((option.name, option.allowed, _default(option), option.description))
        for option in options
    )


def _default(option: methods.Option) -> str:
    return option.source if option.source == OF_THE_DATA else _toml(option.default)


def _partitions() -> str:
    shared, parts = split_options(), []
    for one in partitions().values():
        own = [option for option in one.options.values() if option != shared.get(option.name)]
        parts.append(f"### `{one.name}`\n\n{one.description}.\n\n{_options(own)}")
    return "\n\n".join(parts)


def _models() -> str:
    rows = [
        f"| `{one.name}` | {one.description} | {_named(one.options.values())} |"
        for one in models().values()
    ]
    keys = [
        _row((option.name, f"`{one.name}`", option.allowed, _default(option), option.description))
        for one in models().values()
        for option in one.options.values()
        if option.source != OF_THE_DATA
    ]
    return (
        "| name | network | keys |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\n| key | of | value | default | meaning |\n|---|---|---|---|---|\n"
        + "\n".join(keys)
    )


def _named(options: Iterable[methods.Option]) -> str:
    return ", ".join(f"`{option.name}`" for option in options)


def _datasets() -> str:
    rows = [f"| `{name}` | {one.description} | {one.source} |" for name, one in BUILT_IN.items()]
    rows += [f"| `{name}` | {one.description} | {one.hint} |" for name, one in KNOWN.items()]
    return "| name | samples | from |\n|---|---|---|\n" + "\n".join(rows)


def _method_options() -> str:
    """Every option of a method or suffix, with those that have it."""
    having: dict[str, list[str]] = {}
    first: dict[str, methods.Option] = {}
    titled = [(entry.title, entry) for entry in methods.RECIPES.values()]
    suffixes = [(f"-{name}", entry) for name, entry in methods.COMBINATORS.items()]
    for title, entry in (*titled, *suffixes):
        for option in entry.options.values():
            having.setdefault(option.name, []).append(f"`{title}`")
            first.setdefault(option.name, option)
    rows = [
        _row((name, first[name].allowed, first[name].description, _some(names)))
        for name, names in sorted(having.items())
    ]
    return "| key | value | meaning | of |\n|---|---|---|---|\n" + "\n".join(rows)


def _some(names: list[str]) -> str:
    if len(names) == len(methods.RECIPES):
        return "all methods"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


if __name__ == "__main__":
    Path(__file__).with_name("scenario-files.md").write_text(scenario_page(), "utf-8")
