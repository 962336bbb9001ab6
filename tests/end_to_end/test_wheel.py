"""A wheel alone, without the source beside it, runs the demo."""

import os
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]


def run(*words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_runs_the_demo_in_an_environment_of_its_own(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode:
        pytest.skip("pip, which builds and installs the wheel, is not installed")
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    copy = tmp_path / "source"
    run("git", "-C", SOURCE, "checkout-index", "--all", f"--prefix={copy}/")
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, copy]
    run(*build, cwd=tmp_path, env=plain)
    (wheel,) = tmp_path.glob("bcfl-*.whl")
    place = tmp_path / "environment"
    venv.create(place)
    python = next(place.glob("bin/python")) if os.name == "posix" else place / "Scripts/python.exe"
    packages = run(python, "-c", "import site; print(site.getsitepackages()[0])").strip()
    # Dependencies of the environment that tests run in; what is editable there stays invisible.
    (Path(packages) / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    install = [*pip, "--python", python, "install", "--no-deps", "--no-index", "--ignore-installed"]
    run(*install, wheel, cwd=tmp_path, env=plain)
    where = run(python, "-c", "import bcfl; print(bcfl.__file__)", cwd=tmp_path, env=plain)
    assert where.startswith(packages)
    for name in ("assignment", "posteriors", "bcfl", "experiments"):
        assert (Path(packages) / name / "py.typed").is_file()
    bcfl = python.with_name("bcfl")
    options = ["--methods", "fedavg", "--rounds", "1", "--out", tmp_path / "run"]
    assert "fedavg" in run(bcfl, "run", "demo", *options, cwd=tmp_path, env=plain)
    assert (tmp_path / "run" / "report.html").is_file()
