"""Reports of runs in a session, and finished runs read back from a folder."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from typer.testing import CliRunner

import experiments
from bcfl import Federation, Objective, methods
from bcfl.analysis import metrics, rows, saving
from experiments import datasets, models, partitions
from experiments.cli import app
from experiments.reports import session
from experiments.runs.run_folder import RunFolder
from tests.recipes import built

pytestmark = pytest.mark.usefixtures("plain_figures")

ROUNDS = 3


@pytest.fixture(scope="module")
def runs():
    clients = partitions.rotated(datasets.load("optdigits"), groups=2, clients=8, seed=0)
    model = models.mlp((1, 8, 8), 8, 10)
    settings = dict(num_clusters=2, objective=Objective(local_steps=2, batch_size=16))
    return {
        name: Federation(clients, model, built(name, **settings)).run(ROUNDS)
        for name in ("ifca", "bcfl-mh-3")
    }


class Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.words = []

    def handle_data(self, data):
        self.words.append(data)


def text_of(path):
    parser = Text()
    parser.feed(path.read_text("utf-8"))
    return " ".join(" ".join(parser.words).split())


@pytest.mark.figures
def test_a_report_of_runs_holds_their_numbers_and_pictures(runs, tmp_path):
    path = experiments.report(runs, tmp_path / "mine.html", name="two methods")
    text = text_of(path)
    assert "two methods" in text
    assert "2 methods, 8 clients in 2 true groups, 3 rounds, 1 seed." in text
    for name in runs:
        assert name in text
    assert "<svg" in path.read_text("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.html"]


def test_a_report_of_one_run_is_named(runs, tmp_path):
    assert "ifca" in text_of(experiments.report(runs["ifca"], tmp_path / "r.html", name="ifca"))


def test_runs_that_cannot_be_reported_are_refused(runs, tmp_path):
    with pytest.raises(ValueError, match=r"names of folders .*, got 'a/b'"):
        experiments.report({"a/b": runs["ifca"]}, tmp_path / "r.html")
    with pytest.raises(ValueError, match="at least one run"):
        experiments.report({}, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


SOURCE = """
from bcfl import Federation, methods
from experiments import datasets, models, partitions


def federation():
    clients = partitions.rotated(datasets.load("optdigits"), groups=2, clients=6, seed=0)
    return Federation(clients, models.mlp((1, 8, 8), 8, 10), methods.bcfl_g(num_clusters=2))
"""


def test_a_saved_run_has_all_commands(tmp_path, monkeypatch):
    (tmp_path / "own_federation.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    from own_federation import federation

    run = federation().run(2)
    folder = experiments.save(
        run, tmp_path / "mine", name="mine", federation="own_federation:federation"
    )
    assert "bcfl uncertainty with the folder of the run adds" in text_of(folder / "report.html")
    for command in (
        ["report"],
        ["compare"],
        ["graph"],
        ["explain", "--client", "1"],
        ["uncertainty", "--predictive", "plug-in"],
    ):
        done = CliRunner().invoke(app, [command[0], str(folder), *command[1:]])
        assert done.exit_code == 0, (command, done.output)
    resumed = CliRunner().invoke(app, ["resume", str(folder)])
    assert (resumed.exit_code, "saved from Python" in resumed.output) == (2, True)
    opened = experiments.open(folder)["mine", 0]
    assert opened.to_dataframe().equals(run.to_dataframe())
    assert opened.run.hypotheses.best.clusters[0].key == run.hypotheses.best.clusters[0].key
    with pytest.raises(KeyError, match=r"'mine'\? By method and seed: \('mine', 0\)"):
        experiments.open(folder)["mien", 0]
    for odd in ((), ("mine",), ("mine", 0, 1)):
        with pytest.raises(KeyError, match=r"a method and a seed, got \("):
            experiments.open(folder)[odd]
    with pytest.raises(KeyError, match="'mine' has no finished run of seed 3, only of 0"):
        experiments.open(folder)["mine", 3]
    with pytest.raises(KeyError, match=r"a method and a seed, got 'mine' alone; there are"):
        experiments.open(folder)["mine"]
    sys.modules.pop("own_federation")


SEEDED = """
from bcfl import Federation, methods
from experiments import datasets, models, partitions


def federation(seed):
    clients = partitions.rotated(datasets.load("optdigits"), groups=2, clients=4, seed=seed)
    method = methods.bcfl_g(num_clusters=2)
    return Federation(clients, models.mlp((1, 8, 8), 10), method, seed=seed)


def of_seed_3():
    return federation(3)
"""


def test_runs_of_several_seeds_find_the_federation_of_theirs(tmp_path, monkeypatch):
    (tmp_path / "seeded.py").write_text(SEEDED)
    monkeypatch.syspath_prepend(tmp_path)
    from seeded import federation

    runs = {("mine", seed): federation(seed).run(1) for seed in (3, 5)}
    folder = experiments.save(runs, tmp_path / "run", federation="seeded:federation")
    for pair, run in runs.items():
        opened = experiments.open(folder)[pair].run
        assert opened.groups == run.groups
        assert opened.input_span == run.input_span == (0, 1)
    folder = experiments.save(runs, tmp_path / "wrong", federation="seeded:of_seed_3")
    with pytest.raises(ValueError, match="has seed 3, and the run of 'mine' has seed 5; give a f"):
        experiments.open(folder)["mine", 5].run.metrics()
    sys.modules.pop("seeded")


def test_a_run_saves_itself_as_its_session_saves_it(runs, tmp_path):
    run = runs["bcfl-mh-3"]
    whole = experiments.save(run, tmp_path / "whole", name="mine")
    folder = run.save(str(tmp_path / "own"), name="mine")
    ours, theirs = (
        {path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()}
        for one in (folder, whole)
    )
    alike = [path for path in ours if path.name != "run.json"]
    assert all(ours[path] == theirs[path] for path in alike)
    assert {path.name for path in theirs.keys() - ours.keys()} == {
        "summary.json",
        "rounds.csv",
        "report.html",
    }
    opened = experiments.open(folder)["mine", 0]
    assert opened.to_dataframe().equals(run.to_dataframe())
    assert opened.state.round == run.state.round
    assert opened.state.hypotheses.best.clusters[0].key == run.hypotheses.best.clusters[0].key
    for command in ("report", "compare"):
        done = CliRunner().invoke(app, [command, str(folder)])
        assert done.exit_code == 0, done.output
    with pytest.raises(FileExistsError, match="must be new or empty"):
        run.save(folder)


def test_a_saved_run_without_its_federation_says_what_it_lacks(runs, tmp_path):
    folder = experiments.save(runs, tmp_path / "both", name="both")
    assert "ifca" in text_of(folder / "report.html")
    done = CliRunner().invoke(app, ["explain", str(folder), "--method", "ifca"])
    assert (done.exit_code, "federation='module:object'" in done.output) == (2, True)
    for page in (folder / "report.html", experiments.report(runs, tmp_path / "alone.html")):
        text = text_of(page)
        assert "bcfl uncertainty with the folder" not in text
        assert "In Python, run.tuned chooses" in text
        assert "added by bcfl uncertainty where experiments.save(runs, folder, federation=" in text
    with pytest.raises(FileExistsError, match="must be new or empty, but it holds files"):
        experiments.save(runs, folder)
    with pytest.raises(ValueError, match="must be written module:object, got 'x'"):
        experiments.save(runs, tmp_path / "other", federation="x")


def test_finished_runs_of_a_folder_are_opened(tmp_path):
    folder = tmp_path / "run"
    arguments = ["--rounds", "2", "--methods", "fedavg,bcfl-g", "--seeds", "0,1"]
    assert CliRunner().invoke(app, ["run", "demo", *arguments, "--out", str(folder)]).exit_code == 0
    opened = experiments.open(folder)
    assert list(opened) == [(m, s) for s in (0, 1) for m in ("fedavg", "bcfl-g")]
    one = opened["bcfl-g", 1]
    assert one.config["methods"] == ["bcfl-g"]
    assert [row["round"] for row in one.rows] == [1, 2]
    sizes = one.run.hypotheses.best.association.sizes
    assert sizes.tolist() == one.rows[-1]["cluster_sizes"]
    assert one.run.metrics()["ari"] == pytest.approx(one.rows[-1]["ari"])
    assert one.run.metrics()["accuracy"] == one.rows[-1]["accuracy"]
    assert one.run.to_dataframe().equals(one.to_dataframe())
    bins = one.run.tested
    assert metrics.micro_accuracy(bins) == pytest.approx(one.rows[-1]["accuracy"])
    assert one.hypotheses.best.association.sizes.tolist() == sizes.tolist()
    text = text_of(experiments.report({"mine": one}, tmp_path / "again.html"))
    assert "mine" in text
    assert session._named(one, "mine") == {("mine", 1): one.run}
    assert list(session._named(opened, "run")) == list(opened)
    again = experiments.open(one.run.save(tmp_path / "again", name="again"))["again", 1]
    assert again.rows == one.rows
    config = folder / "bcfl-g" / "seed-1" / "config.toml"
    kept = config.read_text()
    config.write_text("methods = [")
    with pytest.raises(ValueError, match=r"config\.toml isn't as it was written"):
        experiments.open(folder)
    config.write_text(kept)
    (folder / "bcfl-g" / "seed-1" / "hypotheses.graphml").unlink()
    assert ("bcfl-g", 1) not in experiments.open(folder)
    for path in folder.rglob("hypotheses.graphml"):
        path.unlink()
    with pytest.raises(ValueError, match=r"no run in .* is finished; go on with: bcfl resume"):
        experiments.open(folder)


def test_runs_are_saved_with_their_seeds_and_settings(tmp_path):
    clients = partitions.rotated(datasets.load("optdigits"), groups=2, clients=4, seed=0)
    model = models.mlp((1, 8, 8), 10)

    def run(name, seed):
        return Federation(clients, model, built(name, num_clusters=2), seed=seed).run(1)

    runs = {("ifca", 5): run("ifca", 5), ("ifca", 7): run("ifca", 7), "other": run("bcfl-g", 3)}
    folder = experiments.save(runs, tmp_path / "run")
    opened = experiments.open(folder)
    assert list(opened) == [("ifca", 5), ("ifca", 7), ("other", 3)]
    assert set(opened.to_dataframe()["seed"]) == {3, 5, 7}
    text = text_of(folder / "report.html").replace(". ", ".")
    assert "Seeds: 3, 5, 7." in text
    for setting in ("policy.objective.learning_rate 0.1", "other.method bcfl-g"):
        assert setting in text
    own = run("ifca", 5).save(tmp_path / "own")
    assert list(experiments.open(own)) == [("run", 5)]
    with pytest.raises(ValueError, match=r"must have their seeds, got \('ifca', 1\) for seed 5"):
        experiments.report({("ifca", 1): runs["ifca", 5]}, tmp_path / "r.html")
    with pytest.raises(ValueError, match=r"must differ by name or seed, got \('ifca', 5\) twice"):
        experiments.report({"ifca": runs["ifca", 5], ("ifca", 5): runs["ifca", 5]}, own / "r.html")
    named = experiments.save({"name": runs["ifca", 5], "network": runs["other"]}, tmp_path / "n")
    described = json.loads((named / "run.json").read_text())["scenario"]
    assert (described["name"], described["network"]["name"]) == ("run", "mlp")
    assert set(described["runs"]) == {"name", "network"}


@pytest.mark.parametrize("kept", [0, 1], ids=["no record", "the last record"])
def test_a_run_that_went_on_from_a_checkpoint_is_saved_with_what_its_history_knows(
    runs, tmp_path, kept
):
    whole = runs["bcfl-mh-3"]
    run = replace(whole, records=whole.records[3 - kept :])
    folder = experiments.save(run, tmp_path / "mine", name="mine")
    read = experiments.open(folder)["mine", 0].rows
    for ours, theirs in zip(read, whole.rows(), strict=True):
        for column in ("round", "cluster_sizes", "hypothesis_weights", "parents", "ari"):
            assert ours[column] == theirs[column]
    assert read[3 - kept :] == tuple(run.rows())
    assert [row.get("accuracy") for row in read[: 3 - kept]] == [None] * (3 - kept)
    assert f"Rounds without records: 1 to {3 - kept} of mine." in text_of(folder / "report.html")
    for command in ("report", "compare", "graph"):
        done = CliRunner().invoke(app, [command, str(folder)])
        assert done.exit_code == 0, (command, done.output)
    frame = experiments.open(folder)["mine", 0].to_dataframe()
    assert frame["trainings_run"].isna().tolist() == [True] * (3 - kept) + [False] * kept


def test_an_error_leaves_nothing_in_the_folder(runs, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    for module, name in (("bcfl.analysis.saving", "write_graphs"), (session.__name__, "render")):
        monkeypatch.setattr(f"{module}.{name}", lambda *_: 1 / 0)
        for folder in (tmp_path / "new", tmp_path / "empty"):
            with pytest.raises(ZeroDivisionError):
                experiments.save(runs, folder)
        monkeypatch.undo()
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]
    assert experiments.save(runs["ifca"], tmp_path / "empty") == tmp_path / "empty"
    names = {"run", "run.json", "summary.json", "rounds.csv", "report.html"}
    assert {path.name for path in (tmp_path / "empty").iterdir()} == names


def test_one_damaged_method_does_not_hide_the_others(runs, tmp_path):
    folder = experiments.save(runs, tmp_path / "both")
    path = folder / "ifca" / "seed-0" / "metrics.jsonl"
    path.write_text(path.read_text().replace('"accuracy": ', '"accuracy": "high", "was": ', 1))
    damage = r"left out: accuracy in line 1 of .* must be int or float or null, got 'high'"
    with pytest.warns(rows.DamagedRunWarning, match=damage):
        opened = experiments.open(folder)
    assert list(opened) == [("bcfl-mh-3", 0)]
    with pytest.warns(rows.DamagedRunWarning, match=damage):
        shown = RunFolder.read(folder)
    assert shown.methods == ("bcfl-mh-3",)
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert re.search(f"bcfl: warning: {damage}", done.stderr)


def test_a_federation_that_cannot_serve_the_run_is_told(runs, tmp_path, monkeypatch):
    module = ModuleType("made_here")
    module.other = Federation(
        partitions.rotated(datasets.load("optdigits"), groups=2, clients=6, seed=0),
        models.mlp((1, 8, 8), 3, 10),
        methods.fedavg(),
    )
    module.__spec__ = ModuleSpec("made_here", None)
    monkeypatch.setitem(sys.modules, "made_here", module)
    run = runs["ifca"]
    with pytest.warns(saving.FederationWarning, match=r"'made_here:none' is not found: .*run.json"):
        run.save(tmp_path / "a", federation="made_here:none")
    with pytest.warns(saving.FederationWarning, match="has another network than the run"):
        folder = run.save(tmp_path / "b", federation="made_here:other")
    with pytest.raises(ValueError, match="of other clients"):
        experiments.open(folder)["run", 0].run  # noqa: B018 - the access is what fails


def test_a_run_that_lost_rounds_is_refused(runs, tmp_path):
    folder = runs["ifca"].save(tmp_path / "mine", name="mine")
    path = folder / "mine" / "seed-0" / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ValueError, match="holds 0 rounds, its checkpoint comes after round 3"):
        experiments.open(folder)
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert (done.exit_code, done.output.count("holds 0 rounds")) == (2, 1), done.output


def test_what_is_no_run_is_refused(runs, tmp_path):
    with pytest.raises(TypeError, match="runs must be a Run, or a mapping of names to runs, got"):
        experiments.report(list(runs.values()), tmp_path / "r.html")
    with pytest.raises(
        TypeError, match=r"runs must hold runs by name, or by \(name, seed\) .* got 3"
    ):
        experiments.save({"a": 3}, tmp_path / "r")
    with pytest.raises(IsADirectoryError, match=r"must be a file, such as report\.html"):
        experiments.report(runs, tmp_path)
    with pytest.raises(ValueError, match="no module 'nomod' is found"):
        runs["ifca"].save(tmp_path / "r", federation="nomod:f")
    for name in ("..", ".", "", "a/b", "x" * 300, "a\0b"):
        with pytest.raises(ValueError, match="names of runs must be names of folders"):
            runs["ifca"].save(tmp_path / "r", name=name)
    with pytest.raises(TypeError, match="federation must be text, module:object, got <function"):
        runs["ifca"].save(tmp_path / "r", federation=lambda: None)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="it is a file"):
        runs["ifca"].save(tmp_path / "file")
    with pytest.raises(ValueError, match="is a file, no folder of a run"):
        experiments.open(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no run"):
        experiments.open(tmp_path)


def test_the_public_names_of_experiments_are_there():
    assert dir(experiments) == sorted(experiments.__all__)
    assert all(getattr(experiments, name) is not None for name in experiments.__all__)
    with pytest.raises(AttributeError, match="module 'experiments' has no attribute 'nothing'"):
        experiments.nothing  # noqa: B018 - the access is what fails


def test_finished_runs_are_one_data_frame_and_tell_what_they_are(runs, tmp_path):
    opened = experiments.open(experiments.save(runs, tmp_path / "both"))
    frame = opened.to_dataframe()
    assert list(frame.columns[:3]) == ["method", "seed", "round"]
    assert frame.method.tolist() == [name for name in opened_names(opened) for _ in range(3)]
    one = opened["ifca", 0].to_dataframe()
    assert frame[frame.method == "ifca"].accuracy.tolist() == one.accuracy.tolist()
    told = ", ".join(f"{name} (seed 0; 3 rounds)" for name in opened_names(opened))
    assert repr(opened) == f"<FinishedRuns: {told}>"


def opened_names(opened):
    return [method for method, _ in opened]
