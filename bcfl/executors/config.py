"""Names and options of executors, validated on construction; importing this needs no torch."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from bcfl.runtime import check_whole, is_real, is_whole, nearest

ExecutorName = Literal["auto", "loop", "batched", "graph", "processes", "flower"]
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
    known = get_args(ExecutorName)
    raise ValueError(
        f"executor must be one of {', '.join(known)}, got {text!r}.{nearest(text, known)}"
    )


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
    """The number of bytes in a text such as 2GB, 512MiB or 1.5e9.

    Raises:
        ValueError: the text is no size, or less than one byte.
    """
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    unit = UNITS.get(match[2].upper() or "B") if match else None
    try:
        number = float(match[1]) * unit if match and unit else 0.0
    except ValueError:
        number = 0.0
    if number < 1:
        raise ValueError(f"memory must be a size such as 2GB, 512MiB or 800MB, got {text!r}")
    return int(number)


def checked_memory(memory: int | None) -> int | None:
    """The memory budget, validated.

    Raises:
        ValueError: it is not a whole number of at least one byte.
    """
    if memory is not None and not is_whole(memory, 1):
        raise ValueError(f"memory must be a whole number of bytes, at least 1, got {memory!r}")
    return memory


def checked_workers(count: int | None) -> int | None:
    """The number of workers, validated.

    Raises:
        ValueError: it is not a whole number of at least 1.
    """
    if count is not None:
        check_whole("workers", count)
    return count


@dataclass(frozen=True)
class ExecutorConfig:
    """Executor, memory, processes and numerical precision.

    Attributes:
        name: `loop` trains and scores one model at a time; `batched` many in one batch; `graph`, on
            a GPU only, records the steps of `batched` as CUDA graphs; `processes`, on the CPU only,
            is one loop per process; `flower`, on the CPU only, is one loop per node of Flower's
            simulation engine; `auto` is whichever of the first three suits model and device.
        memory: bytes for activations and gradients of executors that batch over models; None takes
            what suits the device.
        workers: processes of `processes`; None is one for each processor that may be used.
        arithmetic: `full`; `tf32` or `bfloat16` are faster where the device has units for them, and
            less exact.
        nodes: nodes of `flower`; None is one for each client.
        cpus_per_node: processors of each node of `flower` at work.
        gpus_per_node: GPUs of each node of `flower` at work, or its share of one; with any, nodes
            train on a GPU, in batches as `auto` does.
    """

    name: ExecutorName = "auto"
    memory: int | None = None
    workers: int | None = None
    arithmetic: Arithmetic = "full"
    _: KW_ONLY
    nodes: int | None = None
    cpus_per_node: float = 1.0
    gpus_per_node: float = 0.0

    def __post_init__(self) -> None:
        executor_named(self.name)
        checked_memory(self.memory)
        checked_workers(self.workers)
        if self.workers is not None and self.name != "processes":
            raise ValueError(
                f"workers is for executor 'processes' alone, got workers {self.workers} with "
                f"executor {self.name!r}"
            )
        self._check_nodes()
        if self.memory is not None and self.name in ("loop", "processes", "flower"):
            raise ValueError(
                f"memory is for executors that batch over models, got memory "
                f"{self.memory} with executor {self.name!r}"
            )
        arithmetic_named(self.arithmetic)

    def _check_nodes(self) -> None:
        if self.nodes is not None:
            check_whole("nodes", self.nodes)
        if not (is_real(self.cpus_per_node) and 0 < self.cpus_per_node < float("inf")):
            raise ValueError(f"cpus_per_node must be positive, got {self.cpus_per_node!r}")
        if not (is_real(self.gpus_per_node) and 0 <= self.gpus_per_node < float("inf")):
            raise ValueError(f"gpus_per_node must be at least 0, got {self.gpus_per_node!r}")
        options = (self.nodes, self.cpus_per_node, self.gpus_per_node)
        if options != (None, 1.0, 0.0) and self.name != "flower":
            raise ValueError(
                f"nodes, cpus_per_node and gpus_per_node are for executor 'flower' alone, got "
                f"executor {self.name!r}"
            )
