"""What becomes of workers: they end, they die, they fail; and how data and values travel."""

import gc
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import cloudpickle
import pytest
import torch
from joblib.externals.loky import BrokenProcessPool
from torch import nn

from bcfl import Model, Objective
from bcfl.architecture.layout import ALL, Part
from bcfl.executors import (
    ExecutorConfig,
    LoopExecutor,
    ProcessesExecutor,
    build_executor,
    select_executor,
)
from bcfl.executors.pool.shared_data import SharedData
from bcfl.executors.pool.workers import Workers, packed, unpacked
from bcfl.executors.sequential.flat_module import ALIGNMENT, aligned
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Describe, Train

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def workers():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pool = Workers(1)
    yield pool
    pool.close()
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def linear():
    return Model(
        name="linear", build=lambda: nn.Sequential(nn.Linear(3, 2)), input_shape=(3,), num_outputs=2
    )


@dataclass(frozen=True)
class Faulty:
    """Fails for everybody."""

    weight: float = 1.0
    part: Part = ALL
    sees: ClassVar[str] = "parameters"

    def penalty(self, parameters, start, references):
        raise ArithmeticError("this term never works")


def process_id():
    return os.getpid()


def killed(signal_number):
    os.kill(os.getpid(), signal_number)


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_error_is_a_failure_of_the_client_as_in_the_loop(workers, linear, clients, newborn):
    start = newborn(linear)
    models = {start.key: start}
    asked = [
        Train(
            data.client,
            start.key,
            Objective(local_steps=2, batch_size=4, regularizers=(Faulty(),)),
            ((),),
        )
        for data in clients
    ]
    loop = LoopExecutor.on(clients, linear, 0, CPU, torch.float32)
    executor = ProcessesExecutor.on(clients, linear, 0, CPU, torch.float32, workers=workers)
    for one in (loop, executor):
        found = one.answer(asked, models, 0)
        assert list(found) == asked
        for failure in found.values():
            assert failure.kind == "crashed"
            assert failure.text.startswith("ArithmeticError: this term never works, at ")
            assert failure.place.endswith(" in penalty")
            assert "this term never works" in str(failure.error)
    assert len(executor.answer([Describe("c0")], {}, 0)) == 1


def test_a_client_that_is_not_here_is_missing(workers, linear, clients):
    executor = ProcessesExecutor.on(clients, linear, 0, CPU, torch.float32, workers=workers)
    answer = executor.answer([Describe("x")], {}, 0)[Describe("x")]
    assert isinstance(answer, Failure)
    assert executor.answer([], {}, 0) == {}


def test_a_dead_worker_is_told_and_replaced(workers):
    with pytest.raises(ChildProcessError, match=r"1 worker process.* died.*fewer workers"):
        workers.do(killed, [(signal.SIGKILL,)])
    assert workers.do(process_id, [()]) != [os.getpid()]


def test_workers_end_with_whoever_holds_them():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pool = Workers.shared(1)
    assert Workers.shared(1) is pool
    (process,) = pool.do(process_id, [()])
    assert is_running(process)
    del pool
    gc.collect()
    assert not is_running(process)


def test_closed_workers_start_again(workers):
    (before,) = workers.do(process_id, [()])
    workers.close()
    workers.close()
    assert not is_running(before)
    (after,) = workers.do(process_id, [()])
    assert after != before


def test_samples_go_with_the_executor(linear, clients):
    executor = ProcessesExecutor.on(clients, linear, 0, CPU, torch.float32, workers=Workers(1))
    folder = Path(executor.folder)
    assert {path.name for path in folder.iterdir()} == {"samples", "site"}
    del executor
    gc.collect()
    assert not folder.exists()


def test_samples_are_found_where_they_were_written(tmp_path, make_client):
    clients = [make_client("a", 1, group=3), make_client("b", 7, tested=0)]
    data = SharedData.write(clients, torch.float64, tmp_path / "samples")
    found = data.open()
    assert list(found) == ["a", "b"]
    for client in clients:
        mine = found[client.client]
        assert mine.group == client.group
        assert list(mine.views) == list(client.views)
        for name, view in client.views.items():
            assert torch.equal(mine.views[name].inputs, view.inputs.double())
            assert torch.equal(mine.views[name].targets, view.targets)
            assert mine.views[name].inputs.data_ptr() % ALIGNMENT == 0


@pytest.mark.parametrize("offset", range(4))
def test_where_numbers_came_from_does_not_matter(offset):
    somewhere = torch.arange(24.0)[offset : offset + 20].view(5, 4)
    placed = aligned(somewhere.T, CPU, torch.float32)
    assert placed.data_ptr() % ALIGNMENT == 0
    assert placed.is_contiguous()
    assert torch.equal(placed, somewhere.T)
    assert aligned(torch.tensor([1, 2]), CPU, torch.float64).dtype == torch.int64


def test_a_view_travels_without_what_is_around_it():
    large = torch.arange(10_000.0)
    payload = packed({"part": large[3:5], "number": torch.tensor(2.0), "add": lambda x: x + 1})
    assert len(payload) < 2000
    found = unpacked(payload)
    assert found["part"].tolist() == [3.0, 4.0]
    assert (found["number"].item(), found["add"](1)) == (2.0, 2)


def test_the_choice_has_its_limits(linear, clients):
    choice = ExecutorConfig("processes", workers=1)
    executor = build_executor(choice, clients, linear, 0, CPU, torch.float32)
    assert isinstance(executor, ProcessesExecutor)
    assert executor.workers.count == 1
    with pytest.raises(ValueError, match=r"'processes' needs the CPU, got 'cuda'"):
        select_executor(choice, linear, torch.device("cuda"))
    for bad in (0, -1, 1.5):
        with pytest.raises(ValueError, match="workers must be a whole number of at least 1"):
            ExecutorConfig("processes", workers=bad)
    with pytest.raises(ValueError, match=r"workers is for .*'processes' alone, .* 2 with .*'auto'"):
        ExecutorConfig(workers=2)
    for name in ("loop", "processes"):
        with pytest.raises(
            ValueError, match=rf"memory is for executors that batch over models, .* 5 .*'{name}'"
        ):
            ExecutorConfig(name, memory=5)


def test_a_pool_that_broke_in_any_way_is_given_up():
    class Broken:
        def submit(self, *work):
            raise BrokenProcessPool("no process could begin")

    workers, ended = Workers(1), []
    workers._pool, workers._end = Broken(), lambda: ended.append(True)
    with pytest.raises(ChildProcessError, match="no process could begin"):
        workers.do(abs, [(-1,)])
    assert ended == [True]
    assert "_pool" not in vars(workers)
