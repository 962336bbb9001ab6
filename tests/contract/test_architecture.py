"""The page on architecture says what the import contract says, and names what is there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
CONTRACTS = {
    contract["containers"][0]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    if "containers" in contract
}
PACKAGES = ("assignment", "bcfl", "experiments", "posteriors")


def rooms_of(package):
    folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    files = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    return folders | files


def test_the_page_names_the_layers_of_the_contract():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    layers = {}
    for number, room in rows:
        layers.setdefault(int(number), set()).add(room)
    wanted = [set(re.split(r"\s*\|\s*", layer)) for layer in CONTRACTS["bcfl"]["layers"]]
    assert [layers[number] for number in sorted(layers)] == wanted


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_in_an_exhaustive_contract(package):
    contract = CONTRACTS[package]
    assert contract["exhaustive"]
    named = {room for layer in contract["layers"] for room in re.split(r"\s*\|\s*", layer)}
    assert named == rooms_of(package)


def test_paths_on_the_page_exist():
    paths = re.findall(r"`((?:assignment|bcfl|experiments|posteriors)/[\w/.]+)`", PAGE)
    assert len(paths) >= 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_has_too_many_modules(package):
    counts = {
        str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) - 1
        for folder in (ROOT / package, *(p.parent for p in (ROOT / package).rglob("__init__.py")))
    }
    assert {folder: count for folder, count in counts.items() if count > 16} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_describes_its_contents(package):
    for path in (ROOT / package).rglob("__init__.py"):
        assert path.read_text().startswith('"""'), path
