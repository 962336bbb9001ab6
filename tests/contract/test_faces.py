"""experiments imports bcfl through the public modules of its packages."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import pytest

import bcfl
import experiments

PACKAGES = sorted(path.parent.name for path in Path(bcfl.__file__).parent.glob("*/__init__.py"))
EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()
"""(file, module) pairs that may import from a private module; none is needed."""


def imported(path: Path) -> set[str]:
    """Modules of bcfl that a file imports from, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {module for module in found if module.split(".")[0] == "bcfl"}


def test_experiments_imports_public_modules_only():
    root = Path(experiments.__file__).parent
    behind = {
        (str(path.relative_to(root)), module)
        for path in root.rglob("*.py")
        for module in imported(path)
        if module.count(".") > 1
    }
    assert behind == EXCEPTIONS


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_module_lists_its_names_and_describes_itself(package):
    module = importlib.import_module(f"bcfl.{package}")
    assert module.__doc__
    assert module.__all__
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(
    "name", ["loggers", "metrics", "pairs", "rows", "selection", "uncertainty"]
)
def test_modules_of_analysis_list_their_own_names_alone(name):
    module = importlib.import_module(f"bcfl.analysis.{name}")
    own = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
        and not isinstance(value, TypeVar)
    }
    assert own <= set(module.__all__)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, key) for key in module.__all__)


def test_all_public_names_of_bcfl_exist():
    assert dir(bcfl) == sorted(bcfl.__all__)
    assert all(getattr(bcfl, name) is not None for name in bcfl.__all__)
    with pytest.raises(AttributeError, match="module 'bcfl' has no attribute 'nothing'"):
        bcfl.nothing  # noqa: B018 - the access is what fails


@pytest.mark.parametrize("package", ["bcfl", "experiments"])
def test_importing_a_package_loads_neither_torch_nor_matplotlib(package):
    code = f"import {package}, sys; sys.exit(bool({{'torch', 'matplotlib'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


STARTS = {
    "a run": "import experiments.launch, experiments.runs.runner\n"
    "from experiments import datasets\ndatasets.load('optdigits')",
    "the answer of a node": "import bcfl.flower, bcfl.methods\nbcfl.methods.build('bcfl-mht-8')",
}


@pytest.mark.parametrize("started", STARTS)
def test_what_starts_often_leaves_slow_libraries_to_where_they_are_used(started):
    """The first file of a run waits for these imports, and so does each message to a node."""
    slow = {"sklearn", "networkx", "pandas", "matplotlib"}
    slow |= {f"scipy.{part}" for part in ("stats", "optimize", "special", "sparse", "linalg")}
    code = f"import sys\n{STARTS[started]}\nsys.exit(', '.join({slow} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
