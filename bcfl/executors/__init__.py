"""Executors: who answers requests, and how."""

from bcfl.executors.arithmetic import Arithmetic
from bcfl.executors.config import ExecutorConfig, ExecutorName
from bcfl.executors.executor import Executor, Outcome, Outcomes
from bcfl.executors.pool.processes import ProcessesExecutor
from bcfl.executors.sequential.loop import LoopExecutor
from bcfl.executors.stacked.batched import BatchedExecutor
from bcfl.executors.wrappers import Unreliable

__all__ = [
    "Arithmetic",
    "BatchedExecutor",
    "Executor",
    "ExecutorConfig",
    "ExecutorName",
    "LoopExecutor",
    "Outcome",
    "Outcomes",
    "ProcessesExecutor",
    "Unreliable",
]
