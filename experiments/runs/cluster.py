"""Methods and seeds as tasks of a Ray cluster, whose machines share the folder of the run."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bcfl.runtime import died, limited_threads, portable
from experiments.runs.files import Pair, RunFiles
from experiments.runs.workers import WorkerConfig

if TYPE_CHECKING:
    from experiments.runs.runner import RunCallbacks

LOCAL = "local"
"""Address of a cluster of this machine alone, started for the run."""
LOOK = 0.2
"""Seconds between two looks for finished tasks."""


def run_on_cluster(
    config: WorkerConfig, pairs: Sequence[Pair], address: str, callbacks: RunCallbacks
) -> None:
    """Run pairs as tasks of a cluster; results don't depend on where they run.

    As many run at a time as the cluster has processors, or GPUs, for them.

    Args:
        config: settings that all tasks share.
        pairs: methods and seeds, in order of start.
        address: of the cluster: `local`, `auto` (the one of this machine), or `ray://HOST:PORT`.
        callbacks: for progress and interruption, in this process.

    Raises:
        Interrupted: `callbacks` requested a stop; every pair at work has ended its round.
        ChildProcessError: a task's process died, perhaps out of memory.
        OSError: Ray is not installed, or there is no such cluster.
        Exception: the error of a task.
    """
    from experiments.runs.runner import Interrupted

    with _connected(address) as ray:
        from ray.util.queue import Queue

        progress, stop = Queue(), Queue()
        gpus = 1 if config.device.startswith("cuda") else 0
        task = ray.remote(num_cpus=config.threads, num_gpus=gpus, max_retries=0)(_work)
        where = replace(config, files=RunFiles(config.files.folder.resolve()))
        running = {task.remote(where, pair, os.getcwd(), progress, stop): pair for pair in pairs}
        stopped = False
        while running:
            if callbacks.should_stop() and not stopped:
                stopped = True
                stop.put(None)
            done, _ = ray.wait(list(running), timeout=LOOK)
            _tell(progress, callbacks)
            for one in done:
                _check(ray, one, running.pop(one))
        _tell(progress, callbacks)
    if stopped:
        raise Interrupted


def _tell(progress: Any, callbacks: RunCallbacks) -> None:  # noqa: ANN401 - a queue of Ray
    for kind, pair, content in progress.get_nowait_batch(progress.qsize()):
        (callbacks.on_start if kind == "begins" else callbacks.on_round)(pair, content)


def _check(ray: Any, task: Any, pair: Pair) -> None:  # noqa: ANN401 - a module and a reference
    """Raise what went wrong in a finished task."""
    try:
        error = ray.get(task)
    except ray.exceptions.RayError as fallen:
        raise died(f"the task of {pair}", type(fallen).__name__, "tasks on the cluster") from fallen
    if error is not None:
        raise error


def _work(
    config: WorkerConfig,
    pair: Pair,
    folder: str,
    progress: Any,  # noqa: ANN401 - a queue of Ray
    stop: Any,  # noqa: ANN401
) -> Exception | None:
    """Run a pair in a task; the error that ended it, if one did."""
    from experiments.runs.runner import Interrupted, RunCallbacks, run_pair

    if not stop.empty():
        return None
    os.chdir(folder)
    setup = config.experiment()
    callbacks = RunCallbacks(
        on_start=lambda pair, done: progress.put(("begins", pair, done)),
        on_round=lambda pair, row: progress.put(("round", pair, row)),
        should_stop=lambda: not stop.empty(),
    )
    try:
        with limited_threads(config.threads):
            run_pair(setup, pair, config.files.of(pair), callbacks)
    except Interrupted:
        return None
    except (Exception, SystemExit) as error:
        error.add_note(f"In the task of {pair}:\n{traceback.format_exc()}")
        return portable(error)
    return None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster."""
    if find_spec("ray") is None:
        raise OSError("Ray is not installed: pip install 'bcfl[flower-simulation]'")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    own = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False, **own)
    except Exception as error:  # Ray raises plain ones where it does not start
        raise OSError(f"no cluster of Ray at {address!r}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
