"""Completion in the shells themselves: their own script, and what they make of the answers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.cli import app

SHELLS = {
    "bash": (
        ("bash", "--norc"),
        'eval "$(_BCFL_COMPLETE=source_bash bcfl)"; COMP_WORDS=({line}); '
        "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        "_bcfl_completion bcfl; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    ),
    "zsh": (
        ("zsh", "-f"),
        'compdef() {{}}; _arguments() {{ print -rl -- "$@" }}; '
        'eval "$(_BCFL_COMPLETE=source_zsh bcfl)"; words=({line}); CURRENT=$#words; '
        "_bcfl_completion",
    ),
    "fish": (
        ("fish", "--no-config"),
        "_BCFL_COMPLETE=source_fish bcfl | source; complete -C '{line}'",
    ),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "some", "without"),
    [
        ("bcfl re", {"report", "resume", "reproduce"}, "compare"),
        ("bcfl run de", {"demo"}, "collapse"),
        ("bcfl run demo --methods ifca,wec", {"ifca,wecfl"}, "bcfl-g"),
        ("bcfl uncertainty x --by cl", {"cluster", "client"}, "all"),
        ("bcfl list options two", {"two-stage-dirichlet"}, "dirichlet-"),
        ("bcfl run demo --set wecfl.num", {"wecfl.num_clusters"}, "ifca"),
    ],
)
def test_a_shell_completes(shell, line, some, without):
    (program, *options), script = SHELLS[shell]
    command = Path(sys.executable).with_name("bcfl")
    if not shutil.which(program) or not command.exists():
        pytest.skip(f"{program} or bcfl is not installed")
    path = os.pathsep.join((str(command.parent), os.environ["PATH"]))
    done = subprocess.run(
        [program, *options, "-c", script.format(line=line)],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(word in done.stdout for word in some), done.stdout + done.stderr
    assert without not in done.stdout


def test_completion_loads_no_torch():
    code = (
        "import sys\n"
        "from experiments.commands import completion\n"
        "assert 'demo' in completion.scenarios('de')\n"
        "assert completion.methods('ifca,bcfl-mh-') == ['ifca,bcfl-mh-']\n"
        "assert completion.executors('lo') == ['loop']\n"
        "assert completion.posteriors('laplace-f') == ['laplace-full']\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def completed(line):
    words = ["bcfl", *line.split(), *([""] if line.endswith(" ") else [])]
    variables = {
        "_BCFL_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(app, [], env=variables, prog_name="bcfl")
    assert result.exit_code == 0, result.output
    return result.stdout.split()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A finished run of two methods and three clients, as far as completion reads it."""
    monkeypatch.chdir(tmp_path)
    table = {"format": 2, "methods": ["ifca", "wecfl"], "scenario": {}, "seeds": [0], "data": {}}
    inner = tmp_path / "run" / "ifca" / "seed-0"
    inner.mkdir(parents=True)
    keys = ("command", "execution", "machine", "versions", "started")
    text = json.dumps(table | {key: {} for key in keys})
    (tmp_path / "run" / "run.json").write_text(text)
    nodes = "".join(f'<node id="{name}"/>' for name in ("anna", "ben", "R&amp;D"))
    (inner / "graph.graphml").write_text(f"<graph>{nodes}</graph>")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("list p", ["partitions"]),
        ("list options rot", ["rotated"]),
        ("list options mlp", ["mlp"]),
        ("run demo --set wecf", ["wecfl."]),
        ("run demo --methods ifca --set ", ["ifca."]),
        ("run demo --set wecfl.num", ["wecfl.num_clusters="]),
        ("run demo --set bcfl-g.posterior=n", ["bcfl-g.posterior=nuts"]),
        ("run demo --grid bcfl-g.rew", ["bcfl-g.reweighed="]),
        ("run demo --posterior laplace-f", ["laplace-full"]),
        ("run demo --clusters ", ["auto"]),
        ("reproduce bcfl/fig-1 cam/2", ["cam/2"]),
        ("explain run --method ", ["ifca", "wecfl"]),
        ("graph run --method w", ["wecfl"]),
        ("uncertainty run --method w", ["wecfl"]),
        ("report run --local-models w", ["wecfl"]),
        ("explain run --client ", ["anna", "ben", "R&D"]),
        ("explain none --client ", []),
        ("explain none --method ", []),
        ("run none --set ", []),
        ("run demo --set ifac.", []),
    ],
)
def test_names_that_a_scenario_or_a_run_has_are_completed(line, words):
    assert completed(line) == words
