"""A run on Flower's simulation engine: one engine for all methods and seeds of a process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from bcfl.executors import ExecutorConfig, ExecutorName, RemoteExecutor, Site, model_digest
from experiments.config.scenario import from_table
from experiments.config.variants import Pair
from experiments.runs.runner import Experiment

if TYPE_CHECKING:
    from bcfl import Federation
    from bcfl.executors import Executor


@contextmanager
def with_engine(setup: Experiment) -> Iterator[Experiment]:
    """The experiment with Flower's engine started, where its executor is `flower`.

    Args:
        setup: the experiment.

    Raises:
        EngineError: Flower or Ray is not installed, or the engine does not start.
    """
    if setup.executor.name != "flower":
        yield setup
        return
    from bcfl.flower import simulated_grid

    clients = len(setup.partition(setup.scenario.seeds[0]))
    with simulated_grid(
        open_node,
        min(setup.executor.nodes or clients, clients),
        cpus_per_node=setup.executor.cpus_per_node,
        gpus_per_node=setup.executor.gpus_per_node,
    ) as grid:
        yield replace(
            setup,
            samples=setup.dataset,
            reach=lambda federation, pair: RemoteExecutor(
                grid=grid,
                setup=_described(setup, pair),
                digest=model_digest(federation.model),
                patience=float("inf"),
            ),
        )


def _described(setup: Experiment, pair: Pair) -> str:
    """All by which a node finds the same clients, network and method."""
    alone = replace(setup.scenario, methods=(pair.method,), seeds=(pair.seed,))
    table = {"name": alone.name, **alone.table()}
    described = {
        "scenario": table,
        "arithmetic": setup.executor.arithmetic,
        "threads": setup.threads,
        "device": "cuda" if setup.executor.gpus_per_node else "cpu",
    }
    return json.dumps(described)


def open_node(setup: str, config: Mapping[str, Any]) -> Site:
    """The clients of a node: an equal share of all.

    Args:
        setup: of the run.
        config: of the node, with its number and that of all nodes.
    """
    federation, executor = _federation(setup)
    clients = federation.answering[config["partition-id"] :: config["num-partitions"]]
    return Site(executor, clients, federation.model, federation.device)


@lru_cache(maxsize=1)
def _federation(setup: str) -> tuple[Federation, Executor]:
    """The clients of the whole simulation, which the nodes of a process share."""
    described = json.loads(setup)
    torch.set_num_threads(described["threads"] or torch.get_num_threads())
    scenario = from_table(described["scenario"])
    device = described["device"]
    name: ExecutorName = "loop" if device == "cpu" else "auto"
    experiment = Experiment(
        scenario=scenario,
        device=device,
        executor=ExecutorConfig(name, arithmetic=described["arithmetic"]),
        threads=described["threads"],
    )
    (pair,) = scenario.pairs
    federation = experiment.federation(pair)
    return federation, federation.executor_of(scenario.federation.rounds)
