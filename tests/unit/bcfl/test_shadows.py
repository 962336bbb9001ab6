"""`import bcfl` says where its sister packages would come from, if not from beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def warnings_of(folder):
    path = os.pathsep.join([str(folder), str(ROOT)])
    found = subprocess.run(
        [sys.executable, "-c", "import bcfl"],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stderr


@pytest.mark.parametrize("name", ["assignment", "experiments", "posteriors"])
@pytest.mark.parametrize("kind", ["package", "module"])
def test_a_package_from_another_place_is_named(tmp_path, name, kind):
    place = tmp_path / name if kind == "package" else tmp_path / f"{name}.py"
    if kind == "package":
        place.mkdir()
        (place / "__init__.py").touch()
    else:
        place.touch()
    told = warnings_of(tmp_path)
    assert told.count("RuntimeWarning") == 1
    assert f"`import {name}` finds {place}, not the package that belongs to bcfl" in told


def test_nothing_is_said_of_an_installation_as_it_should_be(tmp_path):
    assert warnings_of(tmp_path) == ""


def test_a_folder_without_an_init_does_not_hide_a_package(tmp_path):
    (tmp_path / "experiments").mkdir()
    assert warnings_of(tmp_path) == ""
