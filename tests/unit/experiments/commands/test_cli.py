"""The command line: lists, and mistakes told in one sentence."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.runs.plan import new_folder

SMALL = ("--methods", "fedavg", "--rounds", "1")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def mistake(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("bcfl: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_version():
    assert invoke("--version").output == f"bcfl {version('bcfl')}\n"


@pytest.mark.parametrize(
    "command",
    [
        *("--help", "run --help", "list scenarios", "list datasets", "list methods"),
        *("list partitions", "list models", "list options mlp", "list options stream"),
        "list options bcfl-mht-8-con-cks",
    ],
)
def test_what_only_tells_something_loads_no_torch(command):
    code = (
        "import sys\n"
        "from experiments.cli import app\n"
        f"app({command.split()!r}, standalone_mode=False)\n"
        "heavy = {'torch', 'sklearn', 'matplotlib', 'scipy', 'networkx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("methods", {"fedavg", "bcfl-mh-M"}),
        ("scenarios", {"demo", "fashion-label-skew"}),
        ("datasets", {"optdigits", "fashion-mnist"}),
        ("partitions", {"two-stage-dirichlet", "stream"}),
        ("models", {"mlp", "resnet34"}),
    ],
)
def test_lists_for_people_and_programs(kind, some):
    listed = json.loads(invoke("list", kind, "--json").output)
    assert some <= {entry["name"] for entry in listed}
    assert all(entry["description"] for entry in listed)
    lines = invoke("list", kind).output.splitlines()
    assert [entry["name"] for entry in listed] == [line.split()[0] for line in lines[: len(listed)]]


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "demo", "--methods", "bcfl-mh6"),
        ("run", "demo", "--set", "ifca.solver=hepa"),
        ("run", "demo", "--seeds", "x"),
        ("run", "demo", "--executor", "lop"),
        ("profile", "dmo"),
        ("preview", "dmo"),
        *((name, "no-run") for name in ("compare", "explain", "graph", "report", "resume")),
        ("uncertainty", "no-run"),
        *((*command, "--device", "cdua") for command in (("run", "demo"), ("profile", "demo"))),
        ("run", "demo", "--jobs", "0"),
        *(("reproduce", "bcfl/1", *typo) for typo in (("--device", "cdua"), ("--rows", "FdAvg"))),
        ("reproduce", "bclf/1"),
        *(("federation", command, "no-run") for command in ("status", "resume")),
        ("federation", "init", "new", "--port", "0"),
    ],
)
def test_a_mistake_in_a_name_or_an_option_is_told_before_torch_is_loaded(arguments):
    code = (
        "import sys\n"
        "from experiments.cli import app\n"
        "try:\n"
        f"    app({arguments!r})\n"
        "except SystemExit as end:\n"
        "    assert end.code == 2, end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("bcfl: ")


def options_of(*arguments):
    result = invoke("list", "options", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_options_of_a_method_are_listed_with_defaults_and_sources():
    listed = {one["option"]: one for one in json.loads(options_of("bcfl-mh-3-cam", "--json"))}
    number = listed["max_hypotheses"]
    assert (number["default"], number["source"]) == (3, "the name")
    assert listed["update"]["allowed"] == "'alternating' or 'joint' or 'simultaneous'"
    assert listed["cluster_size"]["default"] == [0, None]
    lines = options_of("bcfl-mh-3-cam").splitlines()
    assert any(line.startswith("update=alternating ") for line in lines)
    assert lines[-1].startswith("local training: objective.learning_rate")


def test_the_list_of_methods_begins_with_what_default_stands_for():
    assert invoke("list", "methods").output.startswith("default")
    assert "Stands for bcfl-race-4" in invoke("list", "methods").output.splitlines()[0]


def test_scenarios_whose_data_are_absent_are_marked(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.datasets.catalogue.SYSTEM_FOLDER", tmp_path)
    monkeypatch.delenv("BCFL_DATA", raising=False)
    lines = {line.split()[0]: line for line in invoke("list", "scenarios").output.splitlines()}
    assert lines["fashion-label-skew"].endswith("(not here: data set fashion-mnist)")
    assert "not here" not in lines["demo"]


def test_options_of_partitions_and_models_are_listed():
    lines = options_of("two-stage-dirichlet").splitlines()
    name, text = lines[2].split(maxsplit=1)
    assert name == "alpha=[0.1,10]"
    assert text.startswith("concentration over groups, and over the clients of a group. [a list")
    assert lines[4].startswith("test_fraction=0.25")
    assert lines[-1].startswith("keys of [partition]")
    listed = {one["option"]: one for one in json.loads(options_of("ocfl", "--json"))}
    assert (listed["test_fraction"]["default"], listed["balanced"]["default"]) == (0.3, True)
    assert "seed" not in listed
    classes = {one["option"]: one for one in json.loads(options_of("mlp", "--json"))}["classes"]
    assert (classes["default"], classes["source"]) == (None, "that of the data set")


def test_a_partition_of_a_package_is_listed(monkeypatch):
    known = {"partitions": {"by-age": "mine:by_age"}}
    monkeypatch.setattr("bcfl.methods.registered", lambda kind: known.get(kind, {}))
    monkeypatch.setattr("experiments.config.components.registered", lambda kind: known[kind])
    assert "by-age" in [entry["name"] for entry in json.loads(listed("partitions", "--json"))]
    assert "the arguments of mine:by_age, of a package" in mistake("list", "options", "by-age")


def listed(*arguments):
    return invoke("list", *arguments).output


def test_lists_of_options_are_of_one_name():
    assert "bcfl list options takes the NAME of a method" in mistake("list", "options")
    assert "bcfl list options takes the NAME of a method" in mistake("list", "methods", "ifca")
    assert "unknown method 'ifac'. Did you mean 'ifca'?" in mistake("list", "options", "ifac")
    assert "partition or model 'two-stage-dirchlet'. Did you mean 'two-stage-dirichlet'?" in (
        mistake("list", "options", "two-stage-dirchlet")
    )


def test_what_can_be_listed_is_said():
    result = invoke("list", "modles")
    assert result.exit_code == 2
    assert "{scenarios|datasets|partitions|models|methods|options}" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demoo"], "unknown scenario 'demoo'. Did you mean 'demo'? All: bcfl list scenarios"),
        (["own.toml"], "scenario file 'own.toml' doesn't exist"),
        (["demo", "--methods", "bcfl-mh6"], "unknown method 'bcfl-mh6'. Did you mean 'bcfl-mh-6'?"),
        (["demo", "--methods", "ifca,ifca"], "methods must differ from each other"),
        (["demo", "--methods", ""], "methods must hold at least one"),
        (["demo", "--methods", ","], "nothing at one side of a comma"),
        (["demo", "--set", "partition.groups=3"], "and 'partition' is a section of scenario files"),
        (["demo", "--seeds", "0,x"], "--seeds must be whole numbers such as 0,1,2, got 'x'"),
        (["demo", "--rounds", "0"], "rounds must be at least 1, got 0"),
        (["demo", "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["demo", "--threads", "0"], "threads must be at least 1, got 0"),
        (["demo", "--clusters", "41"], "num_clusters must be at most the number of clients, 40"),
        (["demo", "--clusters", "four"], "--clusters must be a whole number or auto, got 'four'"),
        (["demo", "--cluster-size", "4"], "--cluster-size must be two whole numbers"),
        (["demo", "--cluster-size", "4,x"], "--cluster-size must be two whole numbers"),
        (["demo", "--cluster-size", "5,4"], "cluster_size must be (lower, upper) with 0 <= lower"),
        (["demo", "--cluster-size", "0,9"], "cluster_size (0, 9) does not fit 40 clients in 4"),
        (["demo", "--device", "abacus"], "device must be 'auto', 'cpu'"),
        (["demo", "--data-dir", "nowhere"], "data_dir must be an existing directory, got"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in mistake("run", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_unknown_keys_of_a_scenario_file_are_named(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('methods = ["fedavg"]\n[federation]\nround = 3\n')
    assert mistake("run", path).startswith(
        "bcfl: own.toml: [federation] has no option 'round'. Did you mean 'rounds'? Its own: "
    )


@pytest.mark.parametrize(
    ("partition", "model", "message"),
    [
        ('clients = "many"', "", "[partition]: clients must be a whole number, got 'many'"),
        ("groups = 0", "", "[partition]: groups must be a whole number of at least 1, got 0"),
        ("alfa = 2", "", "[partition]: partition 'two-stage-dirichlet' has no option 'alfa'."),
        ("", "hidden = [-2]", "[model]: layer size must be a whole number of at least 1, got -2"),
        ("", "[federation]\ndrop_out = 2", "[federation]: drop_out must lie between 0 and 1"),
        ("", "[privacy]\nclip = -1", "[privacy]: clip must be positive and finite, got -1"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_file_and_table(
    partition, model, message, tmp_path
):
    path = tmp_path / "own.toml"
    path.write_text(
        'methods = ["fedavg"]\n[data]\ndataset = "optdigits"\n'
        f'[partition]\nkind = "two-stage-dirichlet"\n{partition}\n[model]\nname = "mlp"\n{model}\n'
    )
    assert mistake("run", path, "--out", tmp_path / "run").startswith(f"bcfl: own.toml: {message}")


def test_a_file_that_is_no_scenario_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    assert "'mine.py' is no .toml file, as a scenario is" in mistake("run", "mine.py")
    assert "dataset = 'mine:object'" in mistake("preview", "mine.py")


def test_a_run_below_a_file_is_refused_first(tmp_path):
    (tmp_path / "file").touch()
    told = mistake("run", "demo", *SMALL, "--out", tmp_path / "file" / "run")
    assert f"{tmp_path / 'file'} is a file; give a new folder" in told


def test_debug_shows_where_an_error_came_from(tmp_path):
    result = invoke("run", "demo", "--methods", "ficaa", "--debug", "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "bcfl: unknown method 'ficaa'" in result.stderr


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "holds other files" in mistake("run", "demo", *SMALL, "--out", tmp_path)
    file = tmp_path / "thesis.tex"
    assert "is a file" in mistake("run", "demo", *SMALL, "--out", file)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("command", ["resume", "report", "compare", "graph"])
def test_a_folder_without_a_run(command, tmp_path):
    assert "holds no run (it has no run.json)" in mistake(command, tmp_path)
    assert "doesn't exist" in mistake(command, tmp_path / "none")
    (tmp_path / "run.json").write_text("{")
    assert "run.json is no JSON" in mistake(command, tmp_path)


def test_a_description_that_was_changed_is_named(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 2, "scenario": {}}')
    assert "run.json isn't as it was written" in mistake("resume", tmp_path)


def test_an_empty_description_is_told(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    assert "run.json lacks its contents: format, scenario, methods" in mistake("report", tmp_path)


@pytest.mark.parametrize("command", ["resume", "report", "compare", "graph", "uncertainty"])
def test_a_folder_of_another_version_is_refused(command, tmp_path):
    (tmp_path / "run.json").write_text('{"scenario": {"name": "demo"}, "methods": ["ifca"]}')
    (tmp_path / "summary.json").write_text('{"scenario": "demo", "methods": {"ifca": {}}}')
    assert "has format 1, this version of bcfl reads format 2" in mistake(command, tmp_path)


def test_new_folders_never_collide(tmp_path, monkeypatch):
    from datetime import datetime

    monkeypatch.chdir(tmp_path)
    now = datetime(2026, 11, 28, 9, 15, 7)
    first = new_folder("demo", now)
    assert str(first) == "runs/demo-20261128-091507"
    first.mkdir(parents=True)
    assert str(new_folder("demo", now)) == "runs/demo-20261128-091507-2"


def test_a_key_in_another_table_is_told_its_own(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('methods = ["fedavg"]\n[federation]\nlearning_rate = 0.1\n')
    assert "has no option 'learning_rate'. It belongs in [training]." in mistake("run", path)
    path.write_text('methods = ["fedavg"]\n[training]\nrounds = 3\n')
    assert "[training] has no option 'rounds'. It belongs in [federation]" in mistake("run", path)


def test_a_figure_that_cannot_be_written_is_told_first(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    for out in ("file/a.png", "folder.png"):
        result = invoke("preview", "demo", "--out", tmp_path / out)
        assert (result.exit_code, result.stdout) == (2, ""), result.output


def test_folders_of_written_files_are_made(tmp_path):
    result = invoke("preview", "demo", "--out", tmp_path / "a/b.svg")
    assert result.exit_code == 0, result.output
    assert f"note: made the folder {tmp_path / 'a'}" in result.stderr
    assert (tmp_path / "a/b.svg").is_file()


def test_a_profile_that_is_no_terminal_is_whole(tmp_path):
    result = invoke("profile", "demo", "--methods", "fedavg", "--rounds", 1)
    assert result.exit_code == 0, result.output
    assert "evaluate ms" in result.stdout
    assert "…" not in result.stdout
