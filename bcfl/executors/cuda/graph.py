"""SGD steps batched over models, captured once as a CUDA graph and replayed.

For small networks, the CPU takes longer to launch the kernels of a step than the GPU to run them; a
graph launches them together. A captured step reads and writes fixed tensors, so each batch of
trainings is copied in, replayed step by step, and copied out. Not timed in this version, for lack
of a GPU.
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
Key: TypeAlias = tuple[Objective, tuple[tuple[int, ...], ...], bool, int]

MOST_RECORDINGS = 32
"""Recordings kept if memory allows; the least recently used is dropped first."""


def padded_count(count: int) -> int:
    """A number of problems from a short list, at least `count` and at most 1/8 more from 32 on.

    The number varies between rounds, and each one is recorded separately.
    """
    grain = max(4, 1 << max(0, count.bit_length() - 4))
    return -(-count // grain) * grain


@dataclass(frozen=True, eq=False)
class CudaRecorder:
    """Captures work as a CUDA graph.

    All recordings share the memory of their activations: they never run concurrently, and no
    activation is read after its recording ends.

    Attributes:
        pool: handle of that memory.
    """

    pool: Any = field(default_factory=torch.cuda.graph_pool_handle)

    def __call__(self, work: Work) -> Work:
        """Run the work a few times, to warm up libraries, then capture it."""
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
    """The work itself: the recorder for a CPU, where nothing can be captured."""
    return work


@dataclass(frozen=True, eq=False)
class Recording:
    """One step for a number of problems, ready to be replayed.

    Attributes:
        sgd: the tensors that the step reads and writes.
        rows: (problems, batch) samples of the next step.
        replay: runs it.
    """

    sgd: StackedSgd
    rows: Tensor
    replay: Work

    @classmethod
    def of(cls, problems: StackedTraining, objective: Objective, recorder: Recorder) -> Recording:
        """Record a step with problems of these shapes; it keeps copies of their tensors.

        Args:
            problems: trainings whose shapes the step is captured for.
            objective: of the trainings.
            recorder: captures the step.
        """
        pull = None if problems.pull is None else problems.pull.clone()
        own = replace(
            problems,
            parameters=problems.parameters.clone(),
            buffers=problems.buffers.clone(),
            pull=pull,
            references=[models.clone() for models in problems.references],
            shares=problems.shares.clone(),
            rows=problems.rows[:1].clone(),
        )
        sgd, rows = StackedSgd.of(own, objective), own.rows[0]
        return cls(sgd, rows, recorder(lambda: sgd.step(rows)))

    @property
    def nbytes(self) -> int:
        """Bytes of the fixed tensors."""
        own, sgd = self.sgd.problems, self.sgd
        start = (own.parameters, own.buffers, own.pull, own.shares, own.rows, *own.references)
        now = (sgd.parameters, sgd.buffers, sgd.velocity, sgd.gradients)
        return sum(tensor.nbytes for tensor in (*start, *now) if tensor is not None)

    def run(self, problems: StackedTraining) -> tuple[Tensor, Tensor]:
        """Run all steps of problems of the recorded shapes; see `Descent`."""
        own = self.sgd.problems
        own.parameters.copy_(problems.parameters)
        own.buffers.copy_(problems.buffers)
        own.shares.copy_(problems.shares)
        if own.pull is not None and problems.pull is not None:
            own.pull.copy_(problems.pull)
        for held, models in zip(own.references, problems.references, strict=True):
            held.copy_(models)
        self.sgd.restart()
        for rows in problems.rows:
            self.rows.copy_(rows)
            self.replay()
        return self.sgd.parameters.clone(), self.sgd.buffers.clone()


@dataclass(frozen=True, eq=False)
class GraphDescent:
    """A `Descent` that replays recorded steps; it keeps its recordings.

    Serves one network; recordings are of one set of samples each.

    Attributes:
        recorder: `CudaRecorder()`, or `eager` on a CPU, as in tests.
        memory: bytes of the recordings' own tensors, but for the last one; None sets no bound.
        recordings: by objective, shapes and samples, in order of last use.
    """

    recorder: Recorder
    memory: int | None = None
    recordings: OrderedDict[Key, Recording] = field(default_factory=OrderedDict)

    def __call__(self, problems: StackedTraining, objective: Objective) -> tuple[Tensor, Tensor]:
        """See `Descent`."""
        count = len(problems.parameters)
        full = _filled(problems, padded_count(count))
        shapes = (full.rows.shape[1:], *(models.shape for models in full.references))
        key = (objective, tuple(map(tuple, shapes)), full.pull is None, id(full.samples))
        recording = self.recordings.pop(key, None)
        if recording is None:
            recording = Recording.of(full, objective, self.recorder)
        self.recordings[key] = recording
        self._forget()
        parameters, buffers = recording.run(full)
        return parameters[:count], buffers[:count]

    def _forget(self) -> None:
        """Drop the least recently used recordings, but never the last one."""
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
    """A `BatchedExecutor` on a GPU with CUDA graphs, and Triton kernels where they are faster.

    The memory free now bounds the work for good, so that batches are the same in every round.
    Recordings keep the memory that their steps need: half of what would suit `batched` is for them,
    and half for other work.

    Args:
        clients: clients with their samples.
        model: architecture.
        seed: of the federation.
        device: a CUDA device.
        dtype: of the models' parameters.
        memory: working memory, bytes; None takes what suits the device.

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
    """The problems, padded up to `count` with copies of the first."""
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
        references=[filled(models) for models in problems.references],
        rows=filled(problems.rows, 1),
        shares=filled(problems.shares),
    )
