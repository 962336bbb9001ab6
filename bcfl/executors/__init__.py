"""Executors: who answers requests, and how."""

from bcfl.executors.arithmetic import Arithmetic
from bcfl.executors.batched import BatchedExecutor
from bcfl.executors.choice import Choice, ExecutorName
from bcfl.executors.executor import Executor, Outcome, Outcomes
from bcfl.executors.loop import LoopExecutor
from bcfl.executors.processes import ProcessesExecutor
from bcfl.executors.unreliable import Unreliable

__all__ = [
    "Arithmetic",
    "BatchedExecutor",
    "Choice",
    "Executor",
    "ExecutorName",
    "LoopExecutor",
    "Outcome",
    "Outcomes",
    "ProcessesExecutor",
    "Unreliable",
]
