"""An executor that distributes the clients over processes of one thread each."""

from __future__ import annotations

import os
import shutil
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import torch

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.executors.arithmetic import Computing
from bcfl.executors.attempts import attempted
from bcfl.executors.config import Arithmetic
from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.pool.shared_data import SharedData
from bcfl.executors.pool.workers import Workers, packed, unpacked
from bcfl.executors.sequential.loop import LoopExecutor
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Describe, Request

PARTS_PER_WORKER = 4
"""Clients differ in size: with several parts for each worker none waits long for the last."""
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class ProcessesExecutor:
    """Local training and scoring in several processes of this machine in parallel.

    Every process is a `LoopExecutor` with one thread, so the answers are those of the loop with one
    thread to the last bit, however many processes there are. The samples lie in one file that all
    of them map into their memory. Where a process dies, the clients are done one at a time, and
    those in whose work a process dies once more have failed.

    Attributes:
        workers: the processes.
        folder: holds the samples and all that a process needs to serve the clients; it goes
            with this object.
    """

    workers: Workers
    folder: str

    @classmethod
    def on(  # noqa: PLR0913 - keywords with defaults
        cls,
        clients: Sequence[ClientData],
        model: Model,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        workers: Workers | None = None,
        arithmetic: Arithmetic = "full",
    ) -> ProcessesExecutor:
        """Write the clients' data where the processes find them.

        Args:
            clients: the clients.
            model: the architecture.
            seed: seed of the run.
            device: the CPU.
            dtype: floating-point type of parameters and inputs.
            workers: the processes; None shares those that there are, one for each processor.
            arithmetic: of the processes.
        """
        assert device.type == "cpu"
        folder = mkdtemp(prefix="bcfl-")
        executor = cls(workers or Workers.shared(), folder)
        weakref.finalize(executor, shutil.rmtree, folder, ignore_errors=True)
        data = SharedData.write(clients, dtype, Path(folder) / "samples")
        _site(folder).write_bytes(packed((data, model, seed, dtype, arithmetic)))
        return executor

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer the requests; see `bcfl.executors.Executor`.

        Raises:
            ChildProcessError: no process can begin.
            Exception: as in the loop; as a `RuntimeError` with its words if it
                cannot be pickled.
        """
        try:
            return self._together(requests, models, round, self.workers)
        except ChildProcessError as error:
            warnings.warn(
                f"{error}; its clients are done one at a time", RuntimeWarning, stacklevel=2
            )
        one = Workers(1)
        try:
            one.do(os.getpid, [()])
            outcomes: Outcomes = {}
            for own in _parts(requests, len(requests)):
                tried = attempted(self._together, own, models, round, one)
                outcomes |= dict.fromkeys(own, tried) if isinstance(tried, Failure) else tried
            return outcomes
        finally:
            one.close()

    def _together(
        self,
        requests: Sequence[Request],
        models: Mapping[str, Posterior],
        round: int,
        workers: Workers,
    ) -> Outcomes:
        parts = _parts(requests, PARTS_PER_WORKER * workers.count)
        tasks = [(self.folder, part, _named(part, models), round) for part in parts]
        answers = workers.do(_answers, tasks)
        return {
            request: outcome
            for part, outcomes in zip(parts, answers, strict=True)
            for request, outcome in zip(part, outcomes, strict=True)
        }


def _site(folder: str) -> Path:
    """The file with all that a process needs besides the samples."""
    return Path(folder) / "site"


def _parts(requests: Sequence[Request], count: int) -> list[list[Request]]:
    """At most `count` parts with nearly equal numbers of clients, no client in two of them."""
    by_client: dict[str, list[Request]] = {}
    for request in requests:
        by_client.setdefault(request.client, []).append(request)
    size = max(1, -(-len(by_client) // count))
    groups = list(by_client.values())
    return [
        [request for group in groups[start : start + size] for request in group]
        for start in range(0, len(groups), size)
    ]


def _named(requests: Sequence[Request], models: Mapping[str, Posterior]) -> dict[str, Posterior]:
    """The models that requests name."""
    naming = (request for request in requests if not isinstance(request, Describe))
    return {key: models[key] for request in naming for key in request.models}


_open: dict[str, Computing] = {}
"""In a worker: the executor of the folder last used."""


def _answers(
    folder: str, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
) -> list[Outcome]:
    """Answers of a worker, in the order of the requests."""
    if folder not in _open:
        _open.clear()
        data, model, seed, dtype, arithmetic = unpacked(_site(folder).read_bytes())
        loop = LoopExecutor(clients=data.open(), model=model, seed=seed, device=CPU, dtype=dtype)
        _open[folder] = Computing(loop, arithmetic, CPU)
    outcomes = _open[folder].answer(requests, models, round)
    return [outcomes[request] for request in requests]
