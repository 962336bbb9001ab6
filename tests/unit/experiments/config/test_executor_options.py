import subprocess
import sys

import joblib
import pytest

from bcfl.executors import ExecutorConfig
from experiments.config.executor_options import as_table, executor_of, from_table
from experiments.config.scenario import load
from experiments.runs.runner import Experiment


def test_options_become_a_choice():
    config = executor_of("batched", "2GB", None, "bfloat16")
    assert config == ExecutorConfig("batched", 2 * 10**9, None, "bfloat16")
    assert executor_of("auto", None, None, "full") == ExecutorConfig()


@pytest.mark.parametrize(("jobs", "workers"), [(1, 8), (3, 2), (20, 1)])
def test_processors_are_shared_among_jobs(jobs, workers, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert executor_of("processes", None, None, "full", jobs).workers == workers
    assert executor_of("processes", None, 5, "full", jobs).workers == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("quick", None, None, "full"), "executor must be one of"),
        (("auto", "much", None, "full"), "memory must be a size"),
        (("processes", None, 0, "full"), "workers must be a whole number of at least 1, got 0"),
        (("auto", None, None, "half"), "arithmetic must be one of full, tf32, bfloat16"),
    ],
)
def test_bad_options_say_what_is_allowed(options, words):
    with pytest.raises(ValueError, match=words):
        executor_of(*options)


def test_runs_of_before_had_the_loop():
    assert from_table({"device": "cpu", "jobs": 2}) == ExecutorConfig("loop")
    assert from_table({"executor": "auto", "memory": 5}) == ExecutorConfig("auto", 5)


def test_the_table_of_a_run_reads_back():
    config = ExecutorConfig("processes", None, 3, "bfloat16")
    assert as_table(config)["executor"] == "processes"
    assert from_table(as_table(config)) == config


def test_names_and_options_of_executors_need_no_torch():
    code = "import sys, experiments.config.executor_options; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_setup_hands_on_engine_and_threads():
    setup = Experiment(
        scenario=load("demo"),
        device="cpu",
        executor=ExecutorConfig("loop", arithmetic="tf32"),
        threads=2,
    )
    federation = setup.federation(setup.scenario.pairs[0])
    assert (federation.executor, federation.threads) == (
        ExecutorConfig("loop", arithmetic="tf32"),
        2,
    )
