"""Steps of many trainings recorded once as a CUDA graph, and replayed.

Launching the kernels of a step one by one takes a CPU longer than the GPU needs for small networks.
A graph launches them all at one time. What is recorded reads and writes tensors that stay where
they are, so each training is copied in, replayed step by step, and copied out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.executors.cuda.fused_network import FusedNetwork
from bcfl.executors.memory import budget
from bcfl.executors.stacked.batched import BatchedExecutor
from bcfl.executors.stacked.descent import StackedSgd, StackedTraining
from bcfl.protocol.objective import Objective

Work: TypeAlias = Callable[[], None]
Recorder: TypeAlias = Callable[[Work], Work]
Key: TypeAlias = tuple[Objective, tuple[int, ...], bool]

MOST_RECORDINGS = 32
"""Kept at one time, if memory allows; the one unused for longest goes first."""


def padded_count(count: int) -> int:
    """A number of problems from a short list, at least `count` and at most 1/8 more from 32 on.

    The number that is asked varies a little from round to round, and each is recorded apart.
    """
    grain = max(4, 1 << max(0, count.bit_length() - 4))
    return -(-count // grain) * grain


@dataclass(frozen=True, eq=False)
class CudaRecorder:
    """Records work on a GPU.

    The memory for what lies between the layers is shared by all recordings: they never run at the
    same time, and none of them leaves anything there that is read later.

    Attributes:
        pool: handle of that memory.
    """

    pool: Any = field(default_factory=torch.cuda.graph_pool_handle)

    def __call__(self, work: Work) -> Work:
        """Do the work a few times, so that libraries set themselves up, then record it."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            work()
        return graph.replay


def eager(work: Work) -> Work:
    """The work itself: what a recorder gives where nothing can be recorded, as on a CPU."""
    return work


@dataclass(frozen=True, eq=False)
class Recording:
    """One step for a number of problems, ready to be replayed.

    Attributes:
        sgd: the problems' tensors that the step reads and writes.
        rows: (problems, batch) samples of the next step.
        replay: does it.
    """

    sgd: StackedSgd
    rows: Tensor
    replay: Work

    @classmethod
    def of(cls, problems: StackedTraining, objective: Objective, recorder: Recorder) -> Recording:
        """Record a step with problems of these shapes; it keeps copies of their tensors."""
        pull = None if problems.pull is None else problems.pull.clone()
        own = replace(
            problems,
            parameters=problems.parameters.clone(),
            buffers=problems.buffers.clone(),
            pull=pull,
            shares=problems.shares.clone(),
            rows=problems.rows[:1].clone(),
        )
        sgd, rows = StackedSgd.of(own, objective), own.rows[0]
        return cls(sgd, rows, recorder(lambda: sgd.step(rows)))

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors that stay where they are."""
        own, sgd = self.sgd.problems, self.sgd
        start = (own.parameters, own.buffers, own.pull, own.shares, own.rows)
        now = (sgd.parameters, sgd.buffers, sgd.velocity, sgd.gradients)
        return sum(tensor.nbytes for tensor in (*start, *now) if tensor is not None)

    def run(self, problems: StackedTraining) -> tuple[Tensor, Tensor]:
        """All steps of problems whose shapes are those recorded; see `Descent`."""
        own = self.sgd.problems
        own.parameters.copy_(problems.parameters)
        own.buffers.copy_(problems.buffers)
        own.shares.copy_(problems.shares)
        if own.pull is not None and problems.pull is not None:
            own.pull.copy_(problems.pull)
        self.sgd.restart()
        for rows in problems.rows:
            self.rows.copy_(rows)
            self.replay()
        return self.sgd.parameters.clone(), self.sgd.buffers.clone()


@dataclass(frozen=True, eq=False)
class GraphDescent:
    """A `Descent` that replays recorded steps; it keeps its recordings.

    Serves one network on one set of samples, as the descent of one executor does.

    Attributes:
        recorder: `CudaRecorder()`, or `eager` for a rehearsal on a CPU.
        memory: bytes of the recordings' own tensors, but for the last one; None sets no bound.
        recordings: by what they are for, the last one used at the end.
    """

    recorder: Recorder
    memory: int | None = None
    recordings: OrderedDict[Key, Recording] = field(default_factory=OrderedDict)

    def __call__(self, problems: StackedTraining, objective: Objective) -> tuple[Tensor, Tensor]:
        """See `Descent`."""
        count = len(problems.parameters)
        full = _filled(problems, padded_count(count))
        key = (objective, tuple(full.rows.shape[1:]), full.pull is None)
        recording = self.recordings.pop(key, None)
        if recording is None:
            recording = Recording.of(full, objective, self.recorder)
        self.recordings[key] = recording
        self._forget()
        parameters, buffers = recording.run(full)
        return parameters[:count], buffers[:count]

    def _forget(self) -> None:
        """Drop the recordings that were not used for longest, but never the last one."""
        held = sum(recording.nbytes for recording in self.recordings.values())
        while len(self.recordings) > 1 and (
            len(self.recordings) > MOST_RECORDINGS
            or (self.memory is not None and held > self.memory)
        ):
            _, dropped = self.recordings.popitem(last=False)
            held -= dropped.nbytes


def graph_executor(
    clients: Sequence[ClientData],
    model: Model,
    seed: int,
    device: torch.device,
    dtype: torch.dtype,
    *,
    memory: int | None = None,
) -> BatchedExecutor:
    """A `BatchedExecutor` on a GPU with recorded steps, and kernels of our own where they pay.

    What is free now bounds the work for good, so that the same problems are put together each time.
    Recordings keep the memory that their steps need: half of what would suit `batched` is for them,
    and half for other work.

    Raises:
        ValueError: the device is no CUDA device.
    """
    if device.type != "cuda":
        raise ValueError(f"executor 'graph' needs a CUDA device, got {str(device)!r}")
    batched = BatchedExecutor.on(clients, model, seed, device, dtype, memory=memory)
    fused = FusedNetwork.of(model) if dtype == torch.float32 else None
    most = budget(None, device) // 2 if memory is None else memory
    return replace(
        batched,
        network=fused or batched.network,
        memory=most,
        descent=GraphDescent(CudaRecorder(), most),
    )


def _filled(problems: StackedTraining, count: int) -> StackedTraining:
    """The problems, with copies of the first beside them up to `count`."""
    missing = count - len(problems.parameters)
    if missing == 0:
        return problems

    def filled(tensor: Tensor, dim: int = 0) -> Tensor:
        shape = list(tensor.shape)
        shape[dim] = missing
        return torch.cat([tensor, tensor.narrow(dim, 0, 1).expand(shape)], dim)

    return replace(
        problems,
        parameters=filled(problems.parameters),
        buffers=filled(problems.buffers),
        pull=None if problems.pull is None else filled(problems.pull),
        rows=filled(problems.rows, 1),
        shares=filled(problems.shares),
    )
