"""Executors: who answers requests, and how."""

from bcfl.executors.executor import Executor, Outcome, Outcomes
from bcfl.executors.loop import LoopExecutor
from bcfl.executors.unreliable import Unreliable

__all__ = ["Executor", "LoopExecutor", "Outcome", "Outcomes", "Unreliable"]
