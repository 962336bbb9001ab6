"""Methods and seeds as tasks of a Ray cluster."""

import gc

import pytest

from bcfl.analysis import rows
from experiments.launch import start
from experiments.runs import cluster
from experiments.runs.files import RunFiles
from experiments.runs.plan import Plan, read_plan
from experiments.runs.runner import Experiment, Interrupted, RunCallbacks
from tests.unit.experiments.runs.test_runner import scenario


def plan_of(**changes):
    options = {"device": "cpu", "threads": 1, "jobs": 1, "command": "", **changes}
    return Plan(scenario=scenario(seeds=[4, 5]), **options)


def started(plan, folder, **callbacks):
    setup = Experiment(scenario=plan.scenario, device="cpu", executor=plan.executor)
    start(plan, folder, setup, RunCallbacks(**callbacks))


def metrics(folder):
    pairs = read_plan(folder).scenario.pairs
    read = [rows.read(RunFiles(folder).of(pair).metrics) for pair in pairs]
    return [{k: v for k, v in row.items() if k != "seconds"} for rounds in read for row in rounds]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 2}, "jobs must be 1 with a cluster"),
        ({"executor": "flower"}, "cluster must be left out with executor 'flower'"),
    ],
)
def test_a_cluster_is_the_only_way_of_working_in_parallel(options, words):
    from bcfl.executors import ExecutorConfig

    executor = ExecutorConfig(options.pop("executor", "auto"))
    with pytest.raises(ValueError, match=words):
        plan_of(cluster="local", executor=executor, **options)


def test_without_ray_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(OSError, match="Ray is not installed"):
        started(plan_of(cluster="local"), tmp_path / "run")


@pytest.fixture
def ray():
    yield pytest.importorskip("ray", reason="Ray is not installed")
    gc.collect()  # Ray leaves files open: their warnings belong here


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Ray itself
def test_a_cluster_changes_no_bit_and_stops_on_request(ray, tmp_path):
    started(plan_of(), tmp_path / "here")
    told = []
    plan = plan_of(cluster="local")
    with pytest.raises(Interrupted):
        started(
            plan,
            tmp_path / "there",
            on_round=lambda pair, row: told.append(pair),
            should_stop=lambda: bool(told),
        )
    from experiments.launch import resume

    resume(read_plan(tmp_path / "there"), tmp_path / "there", RunCallbacks())
    assert metrics(tmp_path / "there") == metrics(tmp_path / "here")
    assert read_plan(tmp_path / "there").cluster == "local"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_not_there_is_told(ray, tmp_path):
    with pytest.raises(OSError, match="no cluster of Ray at"):
        started(plan_of(cluster="127.0.0.1:1"), tmp_path / "run")
