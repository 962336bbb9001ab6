"""Selection and construction of executors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.executors.arithmetic import Computing
from bcfl.executors.config import ExecutorConfig, ExecutorName
from bcfl.executors.cuda.graph import graph_executor
from bcfl.executors.executor import Executor
from bcfl.executors.pool.processes import ProcessesExecutor
from bcfl.executors.pool.workers import Workers
from bcfl.executors.sequential.loop import LoopExecutor
from bcfl.executors.stacked.batched import BatchedExecutor, network_of
from bcfl.executors.stacked.dense import DenseNetwork


def select_executor(
    config: ExecutorConfig, model: Model, device: torch.device
) -> tuple[ExecutorName, str]:
    """The name of the executor for a model on a device, and the reason.

    Measured on two CPU cores and on a GPU: small fully connected networks train several times
    faster when batched over models, which saves the overhead of single operations. Batched
    convolutions are no faster on a CPU; on a GPU they are, many times.

    Args:
        config: options of the executor.
        model: the architecture.
        device: where it computes.

    Raises:
        ValueError: `graph` is requested on another device than a GPU, or `processes` or `flower`
            on a GPU, or `graph` with `bfloat16`.
    """
    if config.name != "auto":
        _check(config, device)
        return config.name, "as requested"
    network = network_of(model)
    if network is None:
        return "loop", "the model has layers that cannot be batched over models"
    if device.type == "cuda" and config.arithmetic == "bfloat16":
        return "batched", "a GPU batches over models"
    if device.type == "cuda":
        return "graph", "a GPU batches over models, in recorded steps"
    if isinstance(network, DenseNetwork):
        return "batched", "fully connected layers are batched over models"
    return "loop", "on a CPU batched convolutions save no time"


def _check(config: ExecutorConfig, device: torch.device) -> None:
    """Check that the executor supports device and precision."""
    if config.name == "graph" and device.type != "cuda":
        raise ValueError(f"executor 'graph' needs a CUDA device, got {str(device)!r}")
    if config.name == "graph" and config.arithmetic == "bfloat16":
        raise ValueError("arithmetic must be full or tf32 for executor 'graph', got 'bfloat16'")
    if config.name in ("processes", "flower") and device.type != "cpu":
        raise ValueError(f"executor {config.name!r} needs the CPU, got {str(device)!r}")


def build_executor(
    config: ExecutorConfig,
    clients: Sequence[ClientData],
    model: Model,
    seed: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Executor:
    """The executor, with the clients' data on the device; of `flower` that of a single node.

    Args:
        config: options of the executor.
        clients: the clients that it answers for.
        model: the architecture.
        seed: seed of the run.
        device: where it computes.
        dtype: floating-point type of parameters and inputs.

    Raises:
        ValueError: the executor cannot serve the model on the device.
    """
    name, _ = select_executor(config, model, device)
    parts = (clients, model, seed, device, dtype)
    executor: Executor
    match name:
        case "graph":
            executor = graph_executor(*parts, memory=config.memory)
        case "batched":
            executor = BatchedExecutor.on(*parts, memory=config.memory)
        case "processes":
            pool = Workers.shared(config.workers)
            return ProcessesExecutor.on(*parts, workers=pool, arithmetic=config.arithmetic)
        case _:
            executor = LoopExecutor.on(*parts)
    if config.arithmetic == "full" and device.type == "cpu":
        return executor
    return Computing(executor, config.arithmetic, device)
