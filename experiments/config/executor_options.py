"""Options of executors, from the command line and the files of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import joblib

from bcfl.executors import ExecutorConfig, arithmetic_named, bytes_named, executor_named


def executor_of(
    executor: str, memory: str | None, workers: int | None, arithmetic: str, jobs: int = 1
) -> ExecutorConfig:
    """The executor that options describe.

    Args:
        executor: a name.
        memory: such as 2GB.
        workers: a number; None divides the processors among the jobs.
        arithmetic: a name.
        jobs: parallel methods and seeds.

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
    """The options as a table of `run.json`."""
    table = asdict(config)
    return {"executor": table.pop("name"), **table}


def from_table(table: Mapping[str, Any]) -> ExecutorConfig:
    """The executor in `run.json`; `loop` where it is missing."""
    options = ("memory", "workers", "arithmetic", "nodes", "cpus_per_node", "gpus_per_node")
    known = {key: table[key] for key in options if key in table}
    return ExecutorConfig(table.get("executor", "loop"), **known)
