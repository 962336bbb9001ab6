"""The code of the README and of the pages of the documentation runs, and says what it does."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from experiments.config.scenario import from_table

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
CODE = re.compile(
    r"```(?:python|\{code-cell\} python)\n(?::tags:[^\n]*\n|---\n.*?\n---\n)?(.*?)```",
    flags=re.DOTALL,
)
OUTPUT = re.compile(r"```python\n(?:(?!```).)*```\s*```text\n(.*?)```", flags=re.DOTALL)
WITH_OUTPUT = [DOCS / f"{name}.md" for name in ("index", "assignment")]
"""Pages whose output is written into them, whole."""
RUN_WHOLE = [*WITH_OUTPUT, DOCS / "quickstart.md", DOCS / "saving.md"]
NOTEBOOKS = sorted(
    str(path.relative_to(DOCS).with_suffix(""))
    for path in (*RUN_WHOLE, *DOCS.glob("tutorials/*.md"))
    if path != DOCS / "tutorials" / "index.md"
)


def blocks(path):
    return CODE.findall(path.read_text())


def in_python(code):
    """The code of cells as Python: the shell has the command, and stops at the first error."""

    def called(line):
        command = f'bcfl() {{ {shlex.quote(sys.executable)} -m experiments.cli "$@"; }}\n{line[1]}'
        words = ["bash", "-e", "-o", "pipefail", "-c", command]
        return f"__import__('subprocess').run({words}, check=True, capture_output=True)"

    return re.sub(r"^!(.*)$", called, code, flags=re.MULTILINE)


def ran(cells, name):
    """The names that cells define, and as `printed` what they print."""
    namespace, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(in_python("\n".join(cells)), name, "exec"), namespace)
    return namespace | {"printed": printed.getvalue()}


NUMBER = r"-?\d+\.\d*"


def assert_alike(printed, shown):
    """The same text up to spaces at the ends of lines, and numbers up to rounding elsewhere."""
    texts = [[line.rstrip() for line in text.strip().splitlines()] for text in (printed, shown)]
    words = [[re.sub(NUMBER, "", line) for line in lines] for lines in texts]
    assert words[0] == words[1]
    ours, theirs = (np.array(re.findall(NUMBER, "\n".join(t)), float) for t in texts)
    np.testing.assert_allclose(ours, theirs, atol=0.021)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The names that the code of a page defines; each page runs once, in a folder of its own."""

    @cache
    def of(page):
        with contextlib.chdir(tmp_path_factory.mktemp("page")):
            names = ran(blocks(DOCS / f"{page}.md"), page)
        plt.close("all")
        return names

    return of


@pytest.fixture(scope="module")
def own():
    return ran(blocks(README)[:1], "README example 0")


@pytest.fixture(scope="module")
def unsure():
    return ran(blocks(README)[1:], "README example 1")


def test_the_readme_is_short_and_has_two_examples():
    assert len(README.read_text().splitlines()) <= 150
    assert len(blocks(README)) == 2
    assert "@@" not in README.read_text()


def test_two_kinds_of_clients_are_told_apart(own):
    together = own["run"].co_association()
    assert together[0, 1] > 0.9
    assert together[2, 3] > 0.9
    assert together[0, 2] < 0.1


def test_some_client_is_not_sure(unsure):
    run = unsure["run"]
    row = run.association_dataframe().loc[unsure["unsure"]].to_numpy()
    assert row.max() < 0.8
    assert set(unsure["graph"]) == set(run.clients)
    np.testing.assert_allclose(np.diag(unsure["together"]), 1.0)


def test_the_readme_shows_what_is_printed(unsure):
    code = blocks(README)[1]
    (shown,) = re.findall(r"^# (client-\d+ \[.*\])", code, flags=re.MULTILINE)
    assert_alike(unsure["printed"].splitlines()[0], shown)


@pytest.mark.parametrize("page", [path.stem for path in WITH_OUTPUT])
def test_a_page_shows_what_is_printed(page, pages):
    shown = OUTPUT.findall((DOCS / f"{page}.md").read_text("utf-8"))
    assert_alike(pages(page)["printed"], "\n".join(shown))


def test_output_that_differs_is_noticed():
    assert_alike("a  0.41  1.0 \nb 1", "a  0.42  1.0\nb 1")
    for shown in ("a  0.41  0.9\nb 1", "a  0.41  1.0\nb 2", "a  1.0  0.41\nb 1", "a  0.41\nb 1"):
        with pytest.raises(AssertionError):
            assert_alike("a  0.41  1.0\nb 1", shown)


def test_cells_that_run_commands_fail_where_a_command_does():
    """IPython alone goes on after a failure."""
    with pytest.raises(subprocess.CalledProcessError):
        ran(["!no-such-command | tail -n 5"], "cell")
    shell = SimpleNamespace(user_ns={})
    shell.system = lambda command: shell.user_ns.update(_exit_code=int(command == "false"))
    exec((DOCS / "strict.py").read_text("utf-8"), {"get_ipython": lambda: shell})
    shell.system("true")
    with pytest.raises(subprocess.CalledProcessError):
        shell.system("false")


def test_a_custom_policy_associates_once(pages):
    history = pages("tutorials/policy")["first_choice"].state.history
    first = history[0].associations[0].labels
    assert (first >= 0).all()
    for snapshot in history:
        np.testing.assert_array_equal(snapshot.associations[0].labels, first)


def test_the_page_on_federations_opens_a_client_and_makes_a_deployment(pages, tmp_path):
    page = pages("federation")
    client = page["open_client"]({"client": "anna"})
    deployment = page["deployment"]({"folder": str(tmp_path)})
    assert client.client in deployment.clients
    outputs = deployment.model.build()(client.views["train"].inputs.float())
    assert outputs.shape == (2, deployment.model.num_outputs)


SLOW = {"tutorials/drift", "tutorials/judging", "tutorials/paper", "tutorials/uncertainty"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(n, marks=pytest.mark.slow if n in SLOW else (), id=n) for n in NOTEBOOKS],
)
def test_a_notebook_runs_in_order(page, pages):
    assert pages(page)


def test_the_files_of_the_page_on_extensions_run(tmp_path, monkeypatch):
    text = (DOCS / "extending.md").read_text()
    (tmp_path / "mine.py").write_text(blocks(DOCS / "extending.md")[0])
    (tmp_path / "own.toml").write_text(re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "experiments.cli", "run", "own.toml", "--rounds", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mine:Patient-finetune" in done.stdout


def test_mirrored_images_are_out_of_distribution(pages):
    names = pages("tutorials/uncertainty")
    own, mirrored = (names[name] for name in ("prediction", "of_mirrored"))
    assert np.isfinite(own.ood_score).all()
    assert mirrored.ood_score.mean() > own.ood_score.mean() + 1


def test_every_command_is_named():
    text = (ROOT / "docs/command.md").read_text()
    names = ("run", "resume", "compare", "report", "uncertainty", "explain", "graph", "list")
    assert all(f"\nbcfl {command} " in text for command in names)


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\((?!https:)([^)#]+)(?:#[^)]*)?\)", README.read_text()):
        assert (ROOT / target).exists(), target


def test_the_options_of_a_scenario_are_read_as_printed():
    text = (ROOT / "docs/method-names.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    rest = {
        "name": "own",
        "data": {"dataset": "optdigits"},
        "partition": {"kind": "iid"},
        "model": {"name": "mlp"},
    }
    found = from_table(tomllib.loads(block) | rest)
    assert found.methods == ("fedavg", "ifca-cam")
    policy = found.build("ifca-cam").policy
    assert (policy.num_clusters, policy.objective.learning_rate) == (5, 0.05)
    assert policy.objective.against == "start"
