"""Starting the run of a folder: its data are read once, whatever is done with them."""

from experiments import datasets
from experiments.config.scenario import from_table
from experiments.launch import start
from experiments.runs.plan import Plan
from experiments.runs.runner import Experiment, RunCallbacks

TABLE = {
    "name": "tiny",
    "methods": ["fedavg", "ifca"],
    "seeds": [4, 5],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "rotated", "groups": 2, "clients": 4, "samples_per_client": 20},
    "model": {"name": "linear"},
    "training": {"local_steps": 1},
    "federation": {"rounds": 1, "num_clusters": 2},
}


def test_a_run_and_its_report_read_the_data_once(monkeypatch, tmp_path):
    read, load = [], datasets.load

    def counted(name, *arguments, **options):
        read.append(name)
        return load(name, *arguments, **options)

    monkeypatch.setattr(datasets, "load", counted)
    plan = Plan(scenario=from_table(TABLE), device="cpu", threads=1, jobs=1, command="")
    setup = Experiment(scenario=plan.scenario, device="cpu")
    setup.check()
    start(plan, tmp_path / "run", setup, RunCallbacks())
    assert read == ["optdigits"]
    assert 'id="partition"' in (tmp_path / "run" / "report.html").read_text()
