"""Executors: who answers requests, and how (one by one, stacked, on CUDA, in processes).

What requests and answers are is in `bcfl.protocol`.
"""

from bcfl.executors.arithmetic import Arithmetic, arithmetic_named
from bcfl.executors.config import ExecutorConfig, ExecutorName, executor_named
from bcfl.executors.executor import Executor, Outcome, Outcomes
from bcfl.executors.memory import bytes_named
from bcfl.executors.pool.processes import ProcessesExecutor
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.loop import LoopExecutor
from bcfl.executors.stacked.batched import BatchedExecutor
from bcfl.executors.wrappers import Stepwise, Unreliable

__all__ = [
    "Arithmetic",
    "BatchedExecutor",
    "Executor",
    "ExecutorConfig",
    "ExecutorName",
    "FlatModule",
    "LoopExecutor",
    "Outcome",
    "Outcomes",
    "ProcessesExecutor",
    "Stepwise",
    "Unreliable",
    "arithmetic_named",
    "bytes_named",
    "executor_named",
]
