"""Every study and example that is a command has a help, and refuses wrong values at once."""

import inspect
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
COMMANDS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("studies", "examples")
    for path in sorted((ROOT / "experiments" / folder).rglob("*.py"))
    if '__name__ == "__main__"' in path.read_text()
]
OPTIONS_ALONE = {"continual", "one_shot", "support"}
DOCUMENTED = re.compile(r"`python -m (experiments\.(?:studies|examples)\.[\w.]+)([^`]*)`")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_and_wrong_values(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "2000")
    module = import_module(name)
    with pytest.raises(SystemExit) as ended:
        module.parsed(["--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert text.startswith("usage: ")
    assert inspect.getdoc(module).partition("\n")[0] in text
    wrong = ["--methods", "?"] if name.rpartition(".")[2] in OPTIONS_ALONE else ["?"]
    with pytest.raises(SystemExit) as ended:
        module.parsed(wrong)
    assert ended.value.code == 2
    assert "'?'" in (refused := capsys.readouterr().err) or "arguments: ?" in refused
    assert module.parsed([])


def test_command_lines_on_the_pages_are_read():
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/results/**/*.md")]
    lines = [found for page in pages for found in DOCUMENTED.findall(page.read_text())]
    assert len(lines) > 15
    for name, words in lines:
        import_module(name).parsed(shlex.split(words))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("studies.associations.earlier_rounds", ["20", "1", "5", "41"]),
        ("studies.associations.predictions", ["1", "fedavg"]),
        ("studies.association_posterior", ["8", "rotated", "10", "0", "bcfl-race-5"]),
        ("studies.calibration", ["--rounds", "40,5"]),
        ("studies.calibration", ["--scenario", "digits"]),
        ("studies.misspecified_clusters", ["3", "rotated", "ifac"]),
        ("studies.robust_aggregation", ["0"]),
        ("studies.tracker_ablation", ["1", "0"]),
        ("examples.association_graph", ["missing/graph.png"]),
        ("examples.returning_concept", ["ifca", "-1"]),
    ],
)
def test_what_would_fail_late_is_refused(name, words):
    with pytest.raises(SystemExit) as ended:
        import_module(f"experiments.{name}").parsed(words)
    assert ended.value.code == 2
