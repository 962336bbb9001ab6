"""Completion in the shells themselves: their own script, and what they make of the answers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
        "from experiments.commands import shared\n"
        "assert 'demo' in shared._scenarios('de')\n"
        "assert shared._methods('ifca,bcfl-mh-') == ['ifca,bcfl-mh-']\n"
        "assert shared._executors('lo') == ['loop']\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
