"""Configuration of Sphinx: `make docs` builds the pages into build/docs, warnings are errors."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks lose more to threads than they gain
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")

import environment  # noqa: E402 - it lies beside this file
import generated  # noqa: E402
import references  # noqa: E402
from docutils.nodes import SkipNode  # noqa: E402
from finished import finish  # noqa: E402
from formulas import spaced  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402
from numpy.typing import ArrayLike  # noqa: E402
from signatures import is_python, readable  # noqa: E402
from sphinx.domains.python import PyObject  # noqa: E402
from sphinx.util.logging import getLogger  # noqa: E402
from sphinx.util.typing import stringify_annotation  # noqa: E402

project = "bcfl"
author = "The bcfl developers"
copyright = "The bcfl developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
exclude_patterns = ["_build", "methods_text"]  # texts of the pages in methods
default_role = "code"
suppress_warnings = ["ref.python"]  # one object under two public names, either will do
autodoc_typehints = "signature"
autoclass_content = "both"
autodoc_member_order = "groupwise"
python_maximum_signature_line_length = 120
napoleon_attr_annotations = False  # types are in the signature
napoleon_use_ivar = True
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"
html_theme = "furo"
html_title = "bcfl"
html_static_path = ["_static"]
html_css_files = ["extra.css"]
html_math_renderer = "mathml"
LOGGER = getLogger(__name__)
environment.prepare(HERE.parent)
FULL_NAME = re.compile(r"(?:bcfl|assignment|posteriors|experiments)(?:\.\w+)+")


def in_mathml(self, node):
    """Write a formula as MathML, which browsers draw without a script."""
    inline = node.tagname == "math"
    formula = spaced(convert(node.astext(), display="inline" if inline else "block"))
    displayed = f'<div class="math">{formula}</div>'
    self.body.append(formula if inline else displayed)
    raise SkipNode


def as_plain_text(app, what, name, obj, options, lines):
    """Escape what reStructuredText would read as markup, and link the works that are cited."""
    del app, what, name, obj, options
    in_example = False
    for number, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example:
            continue
        parts = line.split("`")
        for outside in range(0, len(parts), 2):
            text = re.sub(r"([*|])", r"\\\1", parts[outside])
            text = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)
            parts[outside] = references.with_roles(text, ":ref:")
            if outside + 2 < len(parts) and FULL_NAME.fullmatch(parts[outside + 1]):
                parts[outside] += ":py:obj:"  # a link where the reference has the name
        lines[number] = "`".join(parts)


def with_short_types(app, what, name, obj, options, signature, returned):
    """Write `ArrayLike` by its name, an alias of a union of eight types, and defaults as Python."""
    del app, what, options
    for mode in ("smart", "fully-qualified", "fully-qualified-except-typing"):
        long = stringify_annotation(ArrayLike, mode)
        signature = signature and signature.replace(long, "ArrayLike")
        returned = returned and returned.replace(long, "ArrayLike")
    signature = signature and readable(signature, obj)
    if signature and not is_python(signature):
        LOGGER.warning(
            "the signature of %s has no links, since it is no Python: %s", name, signature
        )
    return signature, returned


def with_links_in_site(app, page, source):
    """Turn links to results in the repository into links to their copies in the site."""
    del app
    source[0] = generated.in_site(source[0], page)


def with_corrections(app, error):
    """Correct the pages that were written."""
    if error is None and app.builder.format == "html":
        finish(Path(app.outdir))


def setup(app):
    """Connect the generators, the links and the writer of formulas."""
    generated.write_pages(HERE)
    fields = {field.name: field for field in PyObject.doc_field_types}
    fields["variable"].label = "Attributes"
    app.add_html_math_renderer("mathml", (in_mathml, None), (in_mathml, None))
    app.connect("autodoc-process-docstring", as_plain_text, priority=400)
    app.connect("autodoc-process-signature", with_short_types)
    app.connect("source-read", with_links_in_site)
    app.connect("build-finished", with_corrections)
