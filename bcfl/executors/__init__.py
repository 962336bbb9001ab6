"""Executors: local training and scoring on the clients, here, in other processes, or elsewhere.

Loaded lazily: names and options of executors need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcfl.executors.config import (
        Arithmetic,
        ExecutorConfig,
        ExecutorName,
        arithmetic_named,
        bytes_named,
        executor_named,
    )
    from bcfl.executors.executor import Executor, Outcome, Outcomes
    from bcfl.executors.pool.processes import ProcessesExecutor
    from bcfl.executors.privacy import MissingAccountantError, Privacy, check_accountant
    from bcfl.executors.randomized import Randomized, check_covered, check_private, releases
    from bcfl.executors.remote.executor import RemoteExecutor, Traffic
    from bcfl.executors.remote.grid import Grid, Node, Payload, Reply
    from bcfl.executors.remote.node import Site, model_digest, respond
    from bcfl.executors.selection import build_executor, select_executor
    from bcfl.executors.sequential.flat_module import FlatModule
    from bcfl.executors.sequential.loop import LoopExecutor
    from bcfl.executors.stacked.batched import BatchedExecutor
    from bcfl.executors.wrappers import Stepwise, ThreadLimited, Unreliable

_NAMES = {
    "Arithmetic": "bcfl.executors.config",
    "BatchedExecutor": "bcfl.executors.stacked.batched",
    "Executor": "bcfl.executors.executor",
    "ExecutorConfig": "bcfl.executors.config",
    "ExecutorName": "bcfl.executors.config",
    "FlatModule": "bcfl.executors.sequential.flat_module",
    "Grid": "bcfl.executors.remote.grid",
    "LoopExecutor": "bcfl.executors.sequential.loop",
    "MissingAccountantError": "bcfl.executors.privacy",
    "Node": "bcfl.executors.remote.grid",
    "Outcome": "bcfl.executors.executor",
    "Outcomes": "bcfl.executors.executor",
    "Payload": "bcfl.executors.remote.grid",
    "Privacy": "bcfl.executors.privacy",
    "ProcessesExecutor": "bcfl.executors.pool.processes",
    "Randomized": "bcfl.executors.randomized",
    "RemoteExecutor": "bcfl.executors.remote.executor",
    "Reply": "bcfl.executors.remote.grid",
    "Site": "bcfl.executors.remote.node",
    "Stepwise": "bcfl.executors.wrappers",
    "ThreadLimited": "bcfl.executors.wrappers",
    "Traffic": "bcfl.executors.remote.executor",
    "Unreliable": "bcfl.executors.wrappers",
    "arithmetic_named": "bcfl.executors.config",
    "bytes_named": "bcfl.executors.config",
    "check_accountant": "bcfl.executors.privacy",
    "check_covered": "bcfl.executors.randomized",
    "check_private": "bcfl.executors.randomized",
    "build_executor": "bcfl.executors.selection",
    "executor_named": "bcfl.executors.config",
    "model_digest": "bcfl.executors.remote.node",
    "releases": "bcfl.executors.randomized",
    "respond": "bcfl.executors.remote.node",
    "select_executor": "bcfl.executors.selection",
}

__all__ = [
    "Arithmetic",
    "BatchedExecutor",
    "Executor",
    "ExecutorConfig",
    "ExecutorName",
    "FlatModule",
    "Grid",
    "LoopExecutor",
    "MissingAccountantError",
    "Node",
    "Outcome",
    "Outcomes",
    "Payload",
    "Privacy",
    "ProcessesExecutor",
    "Randomized",
    "RemoteExecutor",
    "Reply",
    "Site",
    "Stepwise",
    "ThreadLimited",
    "Traffic",
    "Unreliable",
    "arithmetic_named",
    "build_executor",
    "bytes_named",
    "check_accountant",
    "check_covered",
    "check_private",
    "executor_named",
    "model_digest",
    "releases",
    "respond",
    "select_executor",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name not in _NAMES:
        raise AttributeError(f"module 'bcfl.executors' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value
