"""Flower's simulation engine, whose nodes are actors of Ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from queue import Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from bcfl.flower.node import OpenNode, node_app

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.serverapp import Grid as ServerGrid

    from bcfl.executors import Grid

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


class EngineError(OSError):
    """Flower's engine did not start, or fell."""


@contextmanager
def simulated_grid(
    open_node: OpenNode, nodes: int, *, cpus_per_node: float = 1.0, gpus_per_node: float = 0.0
) -> Iterator[Grid]:
    """Run Flower's simulation engine for as long as the context lasts.

    The engine runs in a thread of this process. Its server program lends the grid to the caller and
    waits, so run folder, progress and interruption stay the caller's. A cluster of Ray that this
    process is connected to, or that `RAY_ADDRESS` names, is used; otherwise one is started here.

    Args:
        open_node: opens the clients of a node from the setup of a run and the node's configuration,
            which holds `partition-id` and `num-partitions`; see `bcfl.flower.node_app`.
        nodes: number of nodes.
        cpus_per_node: processors of each node at work; as many work at a time as there are.
        gpus_per_node: GPUs of each node at work, or its share of one.

    Raises:
        EngineError: Flower or Ray is not installed, or the engine does not start.
    """
    if find_spec("flwr") is None or find_spec("ray") is None:
        raise EngineError(
            "Flower's simulation engine is not installed: pip install 'bcfl[flower-simulation]'"
        )
    lent: Queue[Any] = Queue()
    over = Event()
    resources = {"num_cpus": cpus_per_node, "num_gpus": gpus_per_node}
    engine = Thread(
        target=_run, args=(open_node, nodes, resources, lent, over), daemon=True, name="flower"
    )
    engine.start()
    grid = _lent(lent, engine)
    try:
        yield grid
    finally:
        over.set()
        engine.join()


def _lent(lent: Queue[Any], engine: Thread) -> Grid:
    """The grid, which raises `EngineError` once the engine has ended."""
    grid = lent.get()

    def check() -> None:
        if not engine.is_alive() or not lent.empty():
            why = "its thread is over" if lent.empty() else lent.get()
            raise EngineError(f"Flower's engine has ended: {why}")

    if isinstance(grid, BaseException):
        raise EngineError(f"Flower's engine did not start: {grid}") from grid
    return replace(grid, check=check)  # type: ignore[no-any-return]


def _run(
    open_node: OpenNode, nodes: int, resources: dict[str, float], lent: Queue[Any], over: Event
) -> None:
    """Run the engine until it is over; what goes wrong is lent in place of the grid."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        from flwr.serverapp import ServerApp
        from flwr.simulation import run_simulation

        from bcfl.flower.grid import FlowerGrid

        server = ServerApp()

        def lend(grid: ServerGrid, context: Context) -> None:
            del context
            lent.put(FlowerGrid(grid))
            over.wait()

        server.main()(lend)
        with _quiet():
            run_simulation(
                server_app=server,
                client_app=node_app(open_node),
                num_supernodes=nodes,
                backend_config={
                    "client_resources": resources,
                    # Without an address, Ray waits for the cluster that ran last on this machine.
                    "init_args": {"address": os.environ.get("RAY_ADDRESS", "local")},
                },
            )
    except (Exception, SystemExit) as error:
        lent.put(error)


@contextmanager
def _quiet() -> Iterator[None]:
    """Context in which Flower logs errors alone."""
    log = logging.getLogger("flwr")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
