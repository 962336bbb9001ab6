"""Pages that are generated: methods, public modules, scenario files, results, references."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from method_pages import method_page, methods_index, suffix_page
from reference import MODULES, api_index, module_pages
from references import linked, references_page
from scenario_page import scenario_page

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
    for module in MODULES:
        pages |= {f"api/{name}.md": text for name, text in module_pages(module).items()}
    pages |= {"api/index.md": api_index(), "methods/index.md": methods_index()}
    pages |= {"scenario-files.md": scenario_page(), "references.md": references_page()}
    measured = folder.parent / "experiments"
    pages["results.md"] = results((measured / "RESULTS.md").read_text("utf-8"))
    for path in sorted((measured / "results" / "studies").glob("*.md")):
        pages[f"studies/{path.name}"] = results(path.read_text("utf-8"))
    for path in sorted((measured / "results").glob("*.md")):
        pages[f"tables/{path.name}"] = table_page(path.read_text("utf-8"))
    for path in (folder / "api").rglob("*.md"):
        if str(path.relative_to(folder)) not in pages:
            path.unlink()  # of a name that is no longer there
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def in_site(text: str, page: str) -> str:
    """The text of a page with links in the site: to copies of results, and to works that are cited.

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

    placed_text = LINK.sub(placed, text)
    return placed_text if page == "references" else linked(placed_text)


def results(text: str) -> str:
    """The overview of results, or a page of it: links to pages of the site, files only named.

    Args:
        text: of RESULTS.md, or of a page of `experiments/results/studies`.
    """
    text = text.replace("](results/studies/", "](studies/").replace("](results/", "](tables/")
    text = re.sub(r"\]\(\.\./\.\./RESULTS\.md(?=[#)])", "](../results.md", text)
    text = re.sub(r"\]\(\.\./(?=\w+\.md[#)])(?!results\.md)", "](../tables/", text)
    outside = r"\[([^\]]*)\]\((\.\./(?!results\.md|tables/)[^)]*)\)"
    return re.sub(outside, lambda link: f"{link[1]} (`{link[2].lstrip('./')}`)", text)


def table_page(text: str) -> str:
    """A page of the papers' tables: pictures where they are, files to download, tables as sections.

    Args:
        text: of a page of `experiments/results`.
    """
    original = "../../experiments/results/"
    placed = re.sub(r"(!\[[^\]]*\]\()", rf"\1{original}", text)
    files = r"(?<!!)\[(md|tex|json)\]\(([^)]*/[^)]*)\)"
    placed = re.sub(files, rf"{{download}}`\1 <{original}\2>`", placed)
    return re.sub(r"(?<!!)\[([^\]]*)\]\((\w+)/[^)]*/(\w+)\.md\)", _section, placed)


def _section(link: re.Match[str]) -> str:
    """A link to the section of a table on the page of its paper."""
    title, paper, scale = link.groups()
    anchor = re.sub(r"[^\w\- ]", "", f"{title}, scale {scale}".lower()).replace(" ", "-")
    return f"[{title}]({paper}.md#{anchor})"
