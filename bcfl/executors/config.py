"""Executors by name, and which one `auto` is. Reading names and options needs no torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import torch

    from bcfl.architecture.model import Model
    from bcfl.data.clients import ClientData
    from bcfl.executors.executor import Executor

ExecutorName = Literal["auto", "loop", "batched", "graph", "processes"]
Arithmetic = Literal["full", "tf32", "bfloat16"]
"""`full`: all digits of the parameters' type. `tf32`: on a GPU matrix products and convolutions
round their factors to 10 bits, and add in float32. `bfloat16`: they take and give 7 bits (mixed
precision: parameters, losses, gradients' sums and curvatures keep theirs)."""
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def executor_named(text: str) -> ExecutorName:
    """The text as the name of an executor.

    Raises:
        ValueError: there is none of that name.
    """
    for name in get_args(ExecutorName):
        if text == name:
            return name  # type: ignore[no-any-return]
    raise ValueError(f"executor must be one of {', '.join(get_args(ExecutorName))}, got {text!r}")


def arithmetic_named(text: str) -> Arithmetic:
    """The text as a kind of arithmetic.

    Raises:
        ValueError: there is none of that name.
    """
    for name in get_args(Arithmetic):
        if text == name:
            return name  # type: ignore[no-any-return]
    raise ValueError(f"arithmetic must be one of {', '.join(get_args(Arithmetic))}, got {text!r}")


def bytes_named(text: str) -> int:
    """The number of bytes that a text such as 2GB, 512MiB or 1.5e9 stands for.

    Raises:
        ValueError: it stands for none, or for less than one byte.
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    unit = UNITS.get(found[2].upper() or "B") if found else None
    try:
        number = float(found[1]) * unit if found and unit else 0.0
    except ValueError:
        number = 0.0
    if number < 1:
        raise ValueError(f"memory must be a size such as 2GB, 512MiB or 800MB, got {text!r}")
    return int(number)


def checked_memory(memory: int | None) -> int | None:
    """The budget itself.

    Raises:
        ValueError: it is no whole number of at least one byte.
    """
    if memory is not None and (not isinstance(memory, int) or memory < 1):
        raise ValueError(f"memory must be a whole number of bytes, at least 1, got {memory!r}")
    return memory


def checked_workers(count: int | None) -> int | None:
    """The number itself.

    Raises:
        ValueError: it is no whole number of at least 1.
    """
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"workers must be a whole number of at least 1, got {count!r}")
    return count


@dataclass(frozen=True)
class ExecutorConfig:
    """An executor by name, what it may take, and how exactly it computes.

    Attributes:
        name: `loop` works on one problem after the other; `batched` on many side by side; `graph`,
            on a GPU only, records the steps of `batched` and replays them; `processes`, on the CPU
            only, is several loops at one time; `auto` is whichever of the first three suits model
            and device.
        memory: bytes for the work beside data and models, of executors that work on many problems
            side by side; None takes what suits the device.
        workers: processes of `processes`; None is one for each processor that may be used.
        arithmetic: `full`; `tf32` or `bfloat16` are faster where the device has units for them, and
            less exact.
    """

    name: ExecutorName = "auto"
    memory: int | None = None
    workers: int | None = None
    arithmetic: Arithmetic = "full"

    def __post_init__(self) -> None:
        executor_named(self.name)
        checked_memory(self.memory)
        checked_workers(self.workers)
        if self.workers is not None and self.name != "processes":
            raise ValueError(
                f"workers is for executor 'processes' alone, got workers {self.workers} with "
                f"executor {self.name!r}"
            )
        if self.memory is not None and self.name in ("loop", "processes"):
            raise ValueError(
                f"memory is for executors that work on many problems side by side, got memory "
                f"{self.memory} with executor {self.name!r}"
            )
        arithmetic_named(self.arithmetic)

    def resolved(self, model: Model, device: torch.device) -> tuple[ExecutorName, str]:
        """The name of the executor for a model on a device, and why it is that one.

        Measured on two CPU cores and on a GPU: small fully connected networks train several times
        faster side by side, since what is saved is the overhead of each operation. Convolutions on
        a CPU are no faster side by side than one after the other; on a GPU they are, many times.

        Raises:
            ValueError: `graph` is asked on another device than a GPU, or `processes` on a GPU, or
                `graph` with `bfloat16`.
        """
        if self.name != "auto":
            self._check(device)
            return self.name, "as asked"
        from bcfl.executors.stacked.batched import network_of
        from bcfl.executors.stacked.dense import DenseNetwork

        network = network_of(model)
        if network is None:
            return "loop", "the model has layers that are not done side by side"
        if device.type == "cuda" and self.arithmetic == "bfloat16":
            return "batched", "a GPU does many problems at one time"
        if device.type == "cuda":
            return "graph", "a GPU does many problems at one time, in recorded steps"
        if isinstance(network, DenseNetwork):
            return "batched", "fully connected layers are done side by side"
        return "loop", "on a CPU convolutions side by side save no time"

    def _check(self, device: torch.device) -> None:
        """Refuse what the executor that was asked for cannot do."""
        if self.name == "graph" and device.type != "cuda":
            raise ValueError(f"executor 'graph' needs a CUDA device, got {str(device)!r}")
        if self.name == "graph" and self.arithmetic == "bfloat16":
            raise ValueError("arithmetic must be full or tf32 for executor 'graph', got 'bfloat16'")
        if self.name == "processes" and device.type != "cpu":
            raise ValueError(f"executor 'processes' needs the CPU, got {str(device)!r}")

    def build(
        self,
        clients: Sequence[ClientData],
        model: Model,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Executor:
        """The executor, with the clients' data on the device."""
        from bcfl.executors.arithmetic import Computing
        from bcfl.executors.cuda.graph import graph_executor
        from bcfl.executors.pool.processes import ProcessesExecutor
        from bcfl.executors.pool.workers import Workers
        from bcfl.executors.sequential.loop import LoopExecutor
        from bcfl.executors.stacked.batched import BatchedExecutor

        name, _ = self.resolved(model, device)
        here = (clients, model, seed, device, dtype)
        executor: Executor
        match name:
            case "graph":
                executor = graph_executor(*here, memory=self.memory)
            case "batched":
                executor = BatchedExecutor.on(*here, memory=self.memory)
            case "processes":
                pool = Workers.shared(self.workers)
                return ProcessesExecutor.on(*here, workers=pool, arithmetic=self.arithmetic)
            case _:
                executor = LoopExecutor.on(*here)
        if self.arithmetic == "full" and device.type == "cpu":
            return executor
        return Computing(executor, self.arithmetic, device)
