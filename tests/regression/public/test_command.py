"""The command's work survives a user's plotting style and odd names of folders.

Reported to neighbouring projects: usetex in matplotlibrc ends the command, and brackets in names
are taken for markup.
"""

import shutil
import warnings

import pytest

with warnings.catch_warnings():  # typer uses names that click will remove
    warnings.simplefilter("ignore", DeprecationWarning)
    from typer.testing import CliRunner

import matplotlib as mpl

from experiments.cli import app

pytestmark = pytest.mark.usefixtures("plain_figures")

SCENARIO = """
methods = ["bcfl-g"]
seeds = [0]

[data]
dataset = "optdigits"

[partition]
kind = "rotated"
groups = 2
clients = 4
samples_per_client = 24

[model]
name = "mlp"
hidden = [4]

[training]
local_steps = 3
learning_rate = 0.1

[federation]
rounds = 1
num_clusters = 2
"""


def command(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "tiny.toml").write_text(SCENARIO)
    done = command("run", folder / "tiny.toml", "--out", folder / "run")
    if done.exit_code:
        raise RuntimeError(done.output)
    return folder / "run"


@pytest.mark.parametrize(
    "name",
    [
        "d[/red]x",
        "e[lr]",
        "plain",
    ],
)
def test_resuming_a_finished_run_tells_its_folder(finished, tmp_path, name):
    folder = shutil.copytree(finished, tmp_path / name)
    done = command("resume", folder)
    assert done.exit_code == 0
    assert f"{folder} is finished" in done.output


@pytest.mark.figures
@pytest.mark.skipif(shutil.which("latex") is not None, reason="then it is only slow")
def test_a_report_needs_no_latex(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "report.html").unlink()
    with mpl.rc_context({"text.usetex": True}):
        assert command("report", folder).exit_code == 0
    assert (folder / "report.html").is_file()


@pytest.mark.figures
@pytest.mark.parametrize(
    "style",
    [
        {},
        {"axes.grid": True, "xtick.color": "red"},
    ],
    ids=["default", "own"],
)
def test_a_report_is_the_same_in_every_style(finished, tmp_path, style):
    folder = shutil.copytree(finished, tmp_path / "run")
    with mpl.rc_context(style):
        assert command("report", folder).exit_code == 0
    before, after = (one / "report.html" for one in (finished, folder))
    assert after.read_text().replace(str(folder), str(finished)) == before.read_text()
