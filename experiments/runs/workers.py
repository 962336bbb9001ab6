"""Methods and seeds in parallel, each in its own process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from bcfl.executors import ExecutorConfig
from bcfl.runtime import become_worker, died, limited_threads, portable
from experiments.runs.files import Pair, RunFiles

if TYPE_CHECKING:
    from experiments.config.scenario import Scenario
    from experiments.runs.runner import Experiment, RunCallbacks

GRACE = 5.0


@dataclass(frozen=True, kw_only=True)
class WorkerConfig:
    """Settings that all workers share.

    Attributes:
        scenario: the experiment.
        device: of models and samples.
        threads: threads of each worker.
        files: files of the run.
        executor: executor of the clients' work, with its options.
    """

    scenario: Scenario
    device: str
    threads: int
    files: RunFiles
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)

    def experiment(self) -> Experiment:
        """The experiment as a worker runs it; loads torch."""
        from experiments.runs.runner import Experiment

        return Experiment(
            scenario=self.scenario,
            device=self.device,
            executor=self.executor,
            threads=self.threads,
        )


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    line: Connection
    pair: Pair | None = None


def run_parallel(
    config: WorkerConfig, pairs: Sequence[Pair], jobs: int, callbacks: RunCallbacks
) -> None:
    """Run pairs in parallel processes; results don't depend on how many there are.

    Args:
        config: settings that all workers share.
        pairs: methods and seeds, in order of start.
        jobs: number of parallel processes.
        callbacks: for progress and interruption, in this process.

    Raises:
        Interrupted: `callbacks` requested a stop; every pair at work has ended its round.
        ChildProcessError: a worker died, perhaps out of memory.
        Exception: the error of a worker.
    """
    from experiments.runs.runner import Interrupted

    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    queue = deque(pairs)
    workers: dict[Connection, _Worker] = {}
    try:
        with _without_interrupts():
            for _ in range(min(jobs, len(pairs))):
                receiver, sender = context.Pipe()
                process = context.Process(target=_work, args=(config, sender, stop, os.getpid()))
                process.start()
                sender.close()
                workers[receiver] = _Worker(process, receiver)
        for worker in workers.values():
            _assign(worker, queue)
        while any(worker.pair for worker in workers.values()):
            if callbacks.should_stop():
                stop.set()
                queue.clear()
            busy = [line for line, worker in workers.items() if worker.pair]
            for line in wait(busy, timeout=0.2):
                _receive(workers[line], queue, callbacks)  # type: ignore[index]
        if stop.is_set():
            raise Interrupted
    finally:
        _dismiss(list(workers.values()))


def _assign(worker: _Worker, queue: deque[Pair]) -> None:
    worker.pair = queue.popleft() if queue else None
    worker.line.send(worker.pair)


def _receive(worker: _Worker, queue: deque[Pair], callbacks: RunCallbacks) -> None:
    try:
        kind, content = worker.line.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join(GRACE)
        raise died(
            f"the process at work on {worker.pair}", f"code {worker.process.exitcode}", "--jobs"
        ) from None
    pair = worker.pair
    assert pair is not None
    match kind:
        case "begins":
            callbacks.on_start(pair, content)
        case "round":
            callbacks.on_round(pair, content)
        case "failed":
            raise content
        case "done":
            _assign(worker, queue)


def _dismiss(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.line.close()
        if worker.pair is not None:
            worker.process.terminate()
    for worker in workers:
        worker.process.join(GRACE)
        if worker.process.is_alive():
            worker.process.kill()


def _work(config: WorkerConfig, line: Connection, stop: Any, parent: int) -> None:  # noqa: ANN401
    become_worker(parent)
    from experiments.runs.runner import Interrupted, RunCallbacks, run_pair

    setup = config.experiment()
    callbacks = RunCallbacks(
        on_start=lambda pair, done: line.send(("begins", done)),
        on_round=lambda pair, row: line.send(("round", row)),
        should_stop=stop.is_set,
    )
    with limited_threads(config.threads):
        for pair in _received(line):
            try:
                run_pair(setup, pair, config.files.of(pair), callbacks)
            except Interrupted:
                pass
            except (Exception, SystemExit) as error:
                error.add_note(f"In the process of {pair}:\n{traceback.format_exc()}")
                line.send(("failed", portable(error)))
                return
            line.send(("done", None))


def _received(line: Connection) -> Iterator[Pair]:
    while True:
        try:
            pair = line.recv()
        except (EOFError, ConnectionResetError):
            return
        if pair is None:
            return
        yield pair


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Defer Ctrl-C; processes started meanwhile ignore it."""
    mask: Callable[..., Any] | None = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    before = mask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)
