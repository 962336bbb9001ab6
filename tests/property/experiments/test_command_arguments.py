"""The command ends without a traceback, whatever its arguments are and its folders hold."""

import re
import shutil
import warnings

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():  # typer uses names that click will remove
    warnings.simplefilter("ignore", DeprecationWarning)
    from typer.testing import CliRunner

from experiments.cli import app

pytestmark = pytest.mark.usefixtures("plain_figures")

SCENARIO = """
methods = ["ifca"]
data.dataset = "optdigits"
partition = {kind = "rotated", groups = 2, clients = 4, samples_per_client = 24}
model = {name = "mlp", hidden = [4]}
training.local_steps = 2
federation = {rounds = 1, num_clusters = 2}
"""
COMMANDS = ["run", "resume", "compare", "report", "graph", "explain", "uncertainty", "list"]
WORDS = [
    *("--rounds", "--seeds", "--methods", "--set", "--grid", "--out", "--jobs", "--threads"),
    *("--device", "--memory", "--executor", "--workers", "--method", "--seed", "--kind"),
    *("--format", "--min-probability", "--debug", "--help", "--data-dir", "0", "-1", "1e9"),
    *("nan", "none", "", "--", "=", "a=b", "ifca.num_clusters=x", "[/red]", "[bold]", "c0"),
    *("no-such-file.toml", "no/such/folder", "/", "/dev/null", "\udce9", "\N{HOSPITAL}", "bcfl-g"),
]
ENDS = (0, 1, 2)
SETTINGS = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


def check(arguments):
    """The command ends by itself, with a message where it failed."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in ENDS
    assert "Traceback" not in done.output or "--debug" in arguments
    assert done.exit_code == 0 or done.output.strip()


arguments = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=6)


@settings(max_examples=60, derandomize=True, **SETTINGS)
@given(st.sampled_from(COMMANDS), arguments)
def test_arguments_are_refused_or_done(command, words):
    check([command, *words])


@pytest.mark.slow
@settings(max_examples=2000, **SETTINGS)
@given(st.sampled_from(COMMANDS), arguments)
def test_more_arguments_are_refused_or_done(command, words):
    check([command, *words])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(SCENARIO)
    done = CliRunner().invoke(app, ["run", str(folder / "tiny.toml"), "--out", str(folder / "run")])
    assert done.exit_code == 0, done.output
    return folder / "run"


NUMBER, WORD = re.compile(rb"-?\d+(\.\d+)?"), re.compile(rb'"[a-z_]+"')
REPLACED = [b"-1", b"1e400", b"null", b"NaN", b'"x"', b"[]", b"{}", b"99999999999999999999", b"0"]


@st.composite
def damaged(draw, content):
    """Content that is cut off, of another byte, or has another number or word."""
    place = draw(st.integers(0, max(0, len(content) - 1)))
    match draw(st.sampled_from(["end", "byte", "number", "word"])):
        case "end":
            return content[:place]
        case "byte":
            return content[:place] + draw(st.binary(max_size=4)) + content[place + 1 :]
        case "number":
            spans, new = [m.span() for m in NUMBER.finditer(content)], st.sampled_from(REPLACED)
        case _:
            spans, new = [m.span() for m in WORD.finditer(content)], st.just(b'"zz"')
    if not spans:
        return b""
    start, stop = draw(st.sampled_from(spans))
    return content[:start] + draw(new) + content[stop:]


FAST = [["graph"], ["graph", "--format", "json"], ["compare"]]
SLOW = [["report"], ["resume"], ["explain"]]


def check_damaged(finished, tmp_path, data, reading):
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(finished, folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".html")
    file = data.draw(st.sampled_from(files))
    if data.draw(st.integers(0, 9)):
        file.write_bytes(data.draw(damaged(file.read_bytes())))
    else:
        file.unlink()
    command, *options = data.draw(st.sampled_from(reading))
    others = {"explain": ["client-0"], "compare": [finished]}.get(command, [])
    check([command, folder, *others, *options])


def test_damaged_folders_are_reported(finished, tmp_path):
    @settings(max_examples=30, derandomize=True, **SETTINGS)
    @given(st.data())
    def run(data):
        check_damaged(finished, tmp_path, data, FAST)

    run()


@pytest.mark.slow
def test_more_damaged_folders_are_reported(finished, tmp_path):
    @settings(max_examples=200, **SETTINGS)
    @given(st.data())
    def run(data):
        check_damaged(finished, tmp_path, data, FAST + SLOW)

    run()
