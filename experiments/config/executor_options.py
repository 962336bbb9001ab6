"""How clients are worked on, as the command line says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import joblib

if TYPE_CHECKING:
    from bcfl.executors import Arithmetic, ExecutorConfig, ExecutorName


@dataclass(frozen=True)
class Engine:
    """`bcfl.executors.ExecutorConfig` without its imports.

    Attributes:
        executor: name of the executor.
        memory: bytes that it may take; None takes what suits the device.
        workers: processes of executor `processes`; None is one for each processor.
        arithmetic: how exactly clients compute.
    """

    executor: ExecutorName = "auto"
    memory: int | None = None
    workers: int | None = None
    arithmetic: Arithmetic = "full"

    @property
    def choice(self) -> ExecutorConfig:
        """The choice itself."""
        from bcfl.executors import ExecutorConfig

        return ExecutorConfig(self.executor, self.memory, self.workers, self.arithmetic)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Engine:
        """What a run that is on file was done with; one without a word of it was done by `loop`."""
        known = {field.name: table[field.name] for field in fields(cls) if field.name in table}
        return cls(**{"executor": "loop", **known})


def engine_of(
    executor: str, memory: str | None, workers: int | None, arithmetic: str, jobs: int = 1
) -> Engine:
    """What options say.

    Args:
        executor: a name.
        memory: such as 2GB.
        workers: a number; None shares the processors that there are among the jobs.
        arithmetic: a name.
        jobs: processes that do methods and seeds.

    Raises:
        ValueError: a name is unknown, or a number is out of range.
    """
    from bcfl.executors import arithmetic_named, bytes_named, executor_named

    name = executor_named(executor)
    many = (
        max(1, joblib.cpu_count() // jobs) if name == "processes" and workers is None else workers
    )
    budget = None if memory is None else bytes_named(memory)
    engine = Engine(name, budget, many, arithmetic_named(arithmetic))
    assert engine.choice
    return engine
