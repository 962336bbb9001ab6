"""Pages of methods and suffixes: a text for each in `methods_text`, and what the registry knows.

A text begins with a paragraph, what the method is and when to use it, followed by the sections of
`SECTIONS`. Source, example, parts and options are filled in from the recipe.
"""

import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from reference import link_of, sentence_of

from bcfl import methods
from bcfl.aggregation.aggregation import Aggregation
from bcfl.protocol.objective import Objective

TEXTS = Path(__file__).parent / "methods_text"
SECTIONS = {
    "method": ("A round", "Cost", "Differences from the paper", "Results"),
    "suffix": ("What it changes", "Where it applies", "Cost", "Results"),
}
SYMBOLS = "Symbols are [those of all pages](../how-it-works.md#notation)."
FIRST = tomllib.loads((Path(__file__).parent / "first_options.toml").read_text("utf-8"))
FEW = 9
"""Up to so many options are one table; of more, those that all its like share are folded away."""
SHARED = (
    "num_clusters",
    "scored_by",
    "temperature",
    "belief_temperature",
    "fusion",
    "curvature",
    "posterior",
    "prior_precision",
    "memory",
    "cluster_size",
    "judge",
    "validation",
    "score_samples",
    "staying",
    "concentration",
    "evidence",
    "evidence_draws",
    "reweighed",
    "folds",
    "solver",
    "decay",
    "history_weights",
    "calibration",
)
"""Shared options, the most consequential first."""
STUDY = re.compile(r'measured, studies/([\w-]+) \("([^"]+)"\)')
"""The source of a default that was measured: the page of the study, and its section."""
MEASURED = "Defaults that are links were measured, and lead to the measurement."
"""Above tables of options."""


def method_page(name: str) -> str:
    """The page of a method.

    Args:
        name: of the recipe.
    """
    entry = methods.RECIPES[name]
    intro, sections = text_of(name, SECTIONS["method"])
    parts = [
        f"# `{entry.title}`\n\n*{entry.description}.*\n",
        f"{intro}\n",
        f"**Source:** {entry.paper or 'none; a reference'}. {SYMBOLS}\n",
        example_of(entry),
        *(f"## {title}\n\n{sections[title]}\n" for title in SECTIONS["method"][:-1]),
        f"## Parts\n\n{parts_of(methods.build(name))}\n",
        _options(entry),
        f"## Results\n\n{sections['Results']}\n",
    ]
    return "\n".join(part for part in parts if part)


def suffix_page(name: str) -> str:
    """The page of a suffix of names.

    Args:
        name: of the combinator, without a hyphen in front.
    """
    entry = methods.COMBINATORS[name]
    intro, sections = text_of(f"suffix-{name}", SECTIONS["suffix"])
    function = entry.function.__name__
    example = (
        f"```python\nfrom bcfl import methods\n\n"
        f'method = methods.build("ifca-{name}", num_clusters=4)\n'
        f"# or, added to another method: methods.{function}(method)\n```\n"
    )
    parts = [
        f"# `-{name}`\n\n*{entry.description}.*\n",
        f"{intro}\n",
        f"**Source:** {entry.paper}. {SYMBOLS}\n",
        example,
        f"## What it changes\n\n{sections['What it changes']}\n",
        f"## Where it applies\n\n{sections['Where it applies']}\n\n{_applicable(name)}\n",
        f"## Cost\n\n{sections['Cost']}\n",
        "## Options\n",
        _first(f"suffix-{name}"),
        _table(entry.options.values()),
        f"## Results\n\n{sections['Results']}\n",
    ]
    return "\n".join(part for part in parts if part)


def _first(page: str) -> str:
    """What to tune first, where that is known."""
    return f"Tune first: {FIRST[page]}.\n" if page in FIRST else ""


def _applicable(suffix: str) -> str:
    """The methods that a suffix can be added to, with links."""
    fitting = [entry for entry in methods.RECIPES.values() if _takes(entry.example, suffix)]
    if len(fitting) == len(methods.RECIPES):
        return "It can be added to every method."
    links = (f"[`{entry.title}`]({entry.name}.md)" for entry in fitting)
    return f"With default options it can be added to {', '.join(links)}."


def _takes(method: str, suffix: str) -> bool:
    try:
        methods.build(f"{method}-{suffix}")
    except ValueError:
        return False
    return True


def methods_index() -> str:
    """The list of all methods and suffixes, and what their pages count."""
    rows = [
        f"| [`{entry.title}`]({name}.md) | {entry.description} | {entry.paper or 'reference'} |"
        for name, entry in methods.RECIPES.items()
    ]
    suffixes = [
        f"| [`-{name}`](suffix-{name}.md) | {entry.description} | {entry.paper} |"
        for name, entry in methods.COMBINATORS.items()
    ]
    names = [*methods.RECIPES, *(f"suffix-{name}" for name in methods.COMBINATORS)]
    head = "| {} | description | source |\n|---|---|---|\n"
    intro, costs = (TEXTS / "index.md").read_text("utf-8").split("\n## Costs\n")
    default = f"`default` stands for `{methods.RECIPES[methods.DEFAULT].example}`."
    parts = [
        intro.replace("DEFAULT", default),
        head.format("method") + "\n".join(rows),
        "## Suffixes\n\nSuffixes modify a method and can be combined, as in `ifca-cam-finetune`.",
        head.format("suffix") + "\n".join(suffixes),
        f"## Costs\n{costs}",
        "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n",
    ]
    return "\n\n".join(parts)


def text_of(name: str, titles: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The introduction and the sections of a text.

    Args:
        name: of the file, without `.md`.
        titles: the sections that it must have, in their order.

    Raises:
        ValueError: it has others, or an empty one.
    """
    text = (TEXTS / f"{name}.md").read_text("utf-8")
    intro, *found = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    sections = dict(zip(found[::2], (part.strip() for part in found[1::2]), strict=True))
    if list(sections) != list(titles) or not all(sections.values()):
        raise ValueError(f"{name}.md must have the sections {list(titles)}, got {list(sections)}")
    return intro.strip(), sections


def example_of(entry: methods.Recipe) -> str:
    """The example of a method, by the name that its page has.

    Args:
        entry: recipe of the method.
    """
    clusters = ", num_clusters=4" if "num_clusters" in entry.options else ""
    note = ""
    if entry.number:
        value = entry.options[entry.number].default
        note = f"  # M = {value} is the option `{entry.number}`"
    lines = f'from bcfl import methods\n\nmethod = methods.build("{entry.example}"{clusters}){note}'
    return f"```python\n{lines}\n```\n"


def parts_of(method: Any) -> str:  # noqa: ANN401 - a Method
    """A nested list of what a method is made of, with links and what is not a default.

    Args:
        method: as `methods.build` makes it.
    """
    lines = [
        *_part("Policy", method.policy, 0),
        *_part("Tracker", method.tracker, 0),
        f"- **Aggregation:** {link_of(Aggregation)}, {_aggregation(method)}",
    ]
    notes = [
        "clusters begin at " + ("one network" if method.common_start else "their own networks")
    ]
    if method.starts > 1:
        notes.append(f"{method.starts} hypotheses at the start")
    if method.validation:
        notes.append(f"a share of {method.validation:g} of the training samples is held out")
    if method.pooling == "logits":
        notes.append("predictions average logits")
    if method.architecture is not None:
        made = getattr(method.architecture, "func", method.architecture)
        notes.append(f"the network is made by `{made.__module__}.{made.__name__}`")
    return "\n".join([*lines, f"- **Method:** {'; '.join(notes)}"])


def _aggregation(method: Any) -> str:  # noqa: ANN401 - a Method
    """How local models become cluster models, in words."""
    kind = getattr(method.policy.objective, "curvature", "samples")
    means = {"samples": "means weighted by samples", "uniform": "unweighted means"}
    if kind in means:
        return means[kind]
    made = method.aggregation
    return f"Gaussians with `curvature={kind}`, `fusion={made.fusion}`, `memory={made.memory}`"


def _part(role: str, value: object, depth: int) -> Iterator[str]:
    """Lines of the list: an object, and those that it holds."""
    inner: list[tuple[str, object]] = []
    settings = []
    for field in fields(value):  # type: ignore[arg-type] # parts are dataclasses
        held = getattr(value, field.name)
        if isinstance(held, Objective):
            settings += [f"`{line}`" for line in _terms(held)]
        elif isinstance(held, tuple) and held and all(map(is_dataclass, held)):
            inner += [(field.name, one) for one in held]
        elif is_dataclass(held) and held != _default(field):
            inner.append((field.name, held))
        elif not is_dataclass(held) and held != _default(field) and not callable(held):
            settings.append(f"`{field.name}={held}`")
    kind = type(value)
    told = f", {', '.join(settings)}" if settings else ""
    name = f"**{role}:**" if depth == 0 else f"`{role}`:"
    yield f"{'  ' * depth}- {name} {link_of(kind)}{told}. {sentence_of(kind)}"
    for label, one in inner:
        yield from _part(label, one, depth + 1)


def _terms(objective: Objective) -> list[str]:
    """The regularisers of an objective, as they are written in Python."""
    return [
        f"{type(term).__name__}({getattr(term, 'weight', '')})" for term in objective.regularizers
    ]


def _default(field: Any) -> object:  # noqa: ANN401 - a dataclass field
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _options(entry: methods.Recipe) -> str:
    """The options of a method: its own first, those of all its like in a fold."""
    shown, folded = _divided(entry)
    if entry.number:
        number = shown[entry.number]
        shown[number.name] = replace(number, description=f"M in the name: {number.description}")
    parts = ["## Options\n", _first(entry.name), _table(shown.values())]
    if folded:
        title = f"{len(folded)} options that it shares with similar methods"
        table = _table(folded.values())
        parts += [f"<details><summary>{title}</summary>\n", table, "</details>\n"]
    parts.append(
        "How clients train is `objective=bcfl.Objective(...)`, see {py:obj}`bcfl.Objective`.\n"
    )
    return "\n".join(part for part in parts if part)


def _divided(
    entry: methods.Recipe,
) -> tuple[dict[str, methods.Option], dict[str, methods.Option]]:
    """Options that are shown, and those that are folded away."""
    usual = inspect.signature(entry.group).parameters
    changed = {n for n, o in entry.options.items() if n in usual and usual[n].default != o.default}
    ranked = sorted(entry.options, key=lambda n: SHARED.index(n) if n in SHARED else -1)
    first = [entry.number] if entry.number else []
    first += ["num_clusters"] if "num_clusters" in entry.options else []
    own = [name for name in ranked if name not in {*usual, *first, "calibration"}]
    other = [name for name in ranked if name in changed and name not in first]
    rest = [name for name in ranked if name not in {*first, *own, *other}]
    shown = [*first, *own, *other]
    if len(entry.options) <= FEW:
        shown, rest = [*shown, *rest], []
    elif len(shown) < FEW:
        more = FEW - len(shown)
        shown, rest = [*shown, *rest[:more]], rest[more:]
    return _chosen(entry.options, shown), _chosen(entry.options, rest)


def _chosen(
    options: Mapping[str, methods.Option], names: Iterable[str]
) -> dict[str, methods.Option]:
    return {name: options[name] for name in names}


def _table(options: Iterable[methods.Option]) -> str:
    rows = ["| option | default | meaning |", "|---|---|---|"]
    options = list(options)
    if any(STUDY.fullmatch(option.source) for option in options):
        rows = [MEASURED, "", *rows]
    for option in options:
        study = STUDY.fullmatch(option.source)
        source = f" Default: {option.source}." if option.source and not study else ""
        description = option.description
        if option.name == "calibration":  # of all methods: the study that is linked says the rest
            description = description.partition(". ")[0] + "."
        meaning = f"{description}{source} ({option.allowed})".replace("|", "\\|")
        required = option.default is inspect.Parameter.empty
        default = "required" if required else f"`{option.default}`"
        default = f"[{default}]({_section(study)})" if study else default
        rows.append(f"| `{option.name}` | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _section(found: re.Match[str]) -> str:
    """The address of the section of a study that measured a default."""
    anchor = re.sub(r"[^\w\- ]", "", found[2].lower()).replace(" ", "-")
    return f"../../experiments/results/studies/{found[1]}.md#{anchor}"
