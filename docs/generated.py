"""Pages that are generated: one per method from the registry, one per public module, results."""

import inspect
import re
from dataclasses import fields
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from method_notes import NOTES
from reference import MODULES, api_index, module_page

from bcfl import methods

COPIES = {
    "experiments/RESULTS.md": "docs/results.md",
    "experiments/results/studies/": "docs/studies/",
    "experiments/results/": "docs/tables/",
}
"""Where `write_pages` copies pages of the repository, the first that fits."""
LINK = re.compile(r"(?<=\]\()(?!\w+:)[^)\s#]+\.md(?=[#)])")


def write_pages(folder: Path) -> None:
    """Write all generated pages below the folder of the documentation.

    Args:
        folder: of the sources, `docs`.
    """
    pages = {f"methods/{name}.md": method_page(name) for name in methods.RECIPES}
    pages |= {f"methods/suffix-{name}.md": suffix_page(name) for name in methods.COMBINATORS}
    pages |= {f"api/{module}.md": module_page(module) for module in MODULES}
    pages |= {"api/index.md": api_index(), "methods/index.md": methods_index()}
    measured = folder.parent / "experiments"
    pages["results.md"] = results((measured / "RESULTS.md").read_text("utf-8"))
    for path in sorted((measured / "results" / "studies").glob("*.md")):
        pages[f"studies/{path.name}"] = results(path.read_text("utf-8"))
    for path in sorted((measured / "results").glob("*.md")):
        pages[f"tables/{path.name}"] = table_page(path.read_text("utf-8"))
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def in_site(text: str, page: str) -> str:
    """The text of a page with its links to results leading to their copies in the site.

    Args:
        text: with links as paths of the repository.
        page: name below `docs` without a suffix, such as `tutorials/posterior`.
    """
    folder = dirname(f"docs/{page}")

    def placed(link: re.Match[str]) -> str:
        target = normpath(join(folder, link[0]))
        for original, copy in COPIES.items():
            if target.startswith(original):
                return relpath(copy + target.removeprefix(original), folder)
        return link[0]

    return LINK.sub(placed, text)


def method_page(name: str) -> str:
    """The page of a method: paper, cost, use, options, policy with equations and deviations.

    Args:
        name: of the recipe.
    """
    entry, note = methods.RECIPES[name], NOTES[name]
    method = methods.build(name)
    parts = [
        f"# `{entry.title}`\n\n{entry.description}.\n",
        f"**Source:** {entry.paper or 'none; a reference'}.\n",
        f"**Cost of a round:** {note.cost}\n",
        f"**When to use it:** {note.use}\n",
        f'```python\nfrom bcfl import methods\n\nmethod = methods.build("{name}")\n```\n',
        "## Policy\n",
        *(_class(kind) for kind in policies(method.policy)),
        "## Tracker\n",
        _class(type(method.tracker)),
        "## Aggregation\n",
        f"`{method.aggregation!r}`\n",
        _options(entry.options),
    ]
    return "\n".join(parts)


def policies(policy: object) -> list[type]:
    """The class of a policy, and those of the policies that it wraps.

    Args:
        policy: of a method.
    """
    inner = [getattr(policy, field.name) for field in fields(policy)]
    wrapped = [kind for one in inner if hasattr(one, "associate") for kind in policies(one)]
    return list(dict.fromkeys([type(policy), *wrapped]))


def methods_index() -> str:
    """The list of all methods and suffixes."""
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
    return (
        f"# Methods\n\n`bcfl.methods.build(name, **options)` makes a method. `default` stands for "
        f"`{methods.RECIPES[methods.DEFAULT].example}`. M in a name stands for a "
        "number, as in `bcfl-mht-8`. [Choosing a method](../choosing.md) says which to use "
        "when.\n\n"
        + head.format("method")
        + "\n".join(rows)
        + "\n\n## Suffixes\n\nSuffixes modify a method and can be combined, as in "
        "`ifca-cam-finetune`.\n\n"
        + head.format("suffix")
        + "\n".join(suffixes)
        + "\n\n```{toctree}\n:hidden:\n\n"
        + "\n".join(names)
        + "\n```\n"
    )


def suffix_page(name: str) -> str:
    """The page of a suffix of names.

    Args:
        name: of the combinator, without a hyphen in front.
    """
    entry = methods.COMBINATORS[name]
    text = f"# `-{name}`\n\n{entry.description}.\n\n**Source:** {entry.paper}.\n\n"
    return text + _options(entry.options)


def _class(kind: type) -> str:
    where = f"{kind.__module__}.{kind.__qualname__}"
    return f"```{{eval-rst}}\n.. autoclass:: {where}\n   :no-index:\n```\n"


def _options(options: dict[str, methods.Option]) -> str:
    rows = ["## Options\n", "| option | default | meaning |", "|---|---|---|"]
    for option in options.values():
        source = f" Default: {option.source}." if option.source else ""
        source = source.replace("Default: measured", "Default: from measurements")
        meaning = f"{option.description}{source} ({option.allowed})".replace("|", "\\|")
        default = "required" if option.default is inspect.Parameter.empty else option.default
        rows.append(f"| `{option.name}` | `{default}` | {meaning} |")
    training = "\nHow clients train is `objective=bcfl.Objective(...)`.\n"
    return "\n".join(rows) + "\n" + training


def results(text: str) -> str:
    """The overview of results, or a page of it, with files of the repository named, not linked.

    Args:
        text: of RESULTS.md, or of a page of `experiments/results/studies`.
    """
    text = text.replace("](results/studies/", "](studies/").replace("](results/", "](tables/")
    text = text.replace("](../../RESULTS.md)", "](../results.md)")
    return re.sub(r"\[([^\]]*)\]\(\.\./([^)]*)\)", r"\1 (`\2`)", text)


def table_page(text: str) -> str:
    """A page of the papers' tables, with files beside it named and pictures where they are.

    Args:
        text: of a page of `experiments/results`.
    """
    placed = re.sub(r"(!\[[^\]]*\]\()", r"\1../../experiments/results/", text)
    return re.sub(r"(?<!!)\[([^\]]*)\]\([^)]*/[^)]*\)", r"\1", placed)
