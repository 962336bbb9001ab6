"""How clients are worked on, as the command line and the files of a run say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import joblib

from bcfl.executors import ExecutorConfig, arithmetic_named, bytes_named, executor_named


def executor_of(
    executor: str, memory: str | None, workers: int | None, arithmetic: str, jobs: int = 1
) -> ExecutorConfig:
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
    name = executor_named(executor)
    many = (
        max(1, joblib.cpu_count() // jobs) if name == "processes" and workers is None else workers
    )
    budget = None if memory is None else bytes_named(memory)
    return ExecutorConfig(name, budget, many, arithmetic_named(arithmetic))


def as_table(config: ExecutorConfig) -> dict[str, Any]:
    """Keys and values as the file of a run has them."""
    table = asdict(config)
    return {"executor": table.pop("name"), **table}


def from_table(table: Mapping[str, Any]) -> ExecutorConfig:
    """What a run that is on file was done with; one without a word of it was done by `loop`."""
    known = {key: table[key] for key in ("memory", "workers", "arithmetic") if key in table}
    return ExecutorConfig(table.get("executor", "loop"), **known)
