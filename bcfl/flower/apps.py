"""The programs of server and nodes of a deployed federation."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bcfl.analysis import metrics
from bcfl.analysis.rows import Row
from bcfl.analysis.run import Run
from bcfl.data.clients import ClientData
from bcfl.data.view import View
from bcfl.executors import Privacy, RemoteExecutor, Site, model_digest
from bcfl.flower.deployment import Deployment, OpenDeployment
from bcfl.flower.node import node_app
from bcfl.rounds.state import RoundRecord

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid as ServerGrid
    from flwr.serverapp import ServerApp

    from bcfl.executors import Grid

OpenClient = Callable[[Mapping[str, Any]], ClientData]
"""The samples of a node's client, from Flower's configuration of the node."""
OnEnd = Callable[[Run], None]
LOG = logging.getLogger("flwr")
"""What Flower shows of a run."""
PRIVACY = "privacy."
SECRET = 32
PATIENCE = 60.0
"""Seconds that a node is given at least to say who it is."""
SITES = 8
"""Nodes of one process whose samples are kept open between messages."""


def client_app(open_client: OpenClient, deployment: OpenDeployment) -> ClientApp:
    """The `ClientApp` of nodes that hold one client each.

    Args:
        open_client: reads the samples, on the node; see `bcfl.flower.read_client`. A node's
            configuration may also name a `device`, by default `cpu`, and with `privacy` must name
            `secret`: a file of at least 32 bytes that this node alone can read, such as the key of
            the node.
        deployment: as for `server_app`; from the server's run configuration.

    Raises:
        ImportError: Flower is not installed.
    """

    @lru_cache(maxsize=SITES)
    def opened(setup: str, config: str) -> Site:
        options = json.loads(config)
        plan = deployment(json.loads(setup))
        secret = secret_of(options) if plan.privacy else None
        return plan.site(open_client(options), options.get("device", "cpu"), secret)

    return node_app(lambda setup, config: opened(setup, json.dumps(config, sort_keys=True)))


def secret_of(options: Mapping[str, Any]) -> bytes:
    """The content of the file from which a node draws its noise.

    Args:
        options: the node's configuration.

    Raises:
        ValueError: it names no such file, or one that is too short.
        OSError: the file cannot be read.
    """
    if "secret" not in options:
        raise ValueError(
            "with privacy the node's configuration must hold 'secret', a file from which its noise "
            "is drawn"
        )
    content = Path(str(options["secret"])).expanduser().read_bytes()
    if len(content) < SECRET:
        raise ValueError(f"the file 'secret' must hold at least {SECRET} bytes, got {len(content)}")
    return content


def server_app(deployment: OpenDeployment, *, on_end: OnEnd = lambda run: None) -> ServerApp:
    """The `ServerApp` of a federation: it does the rounds, and writes the run folder.

    Args:
        deployment: builds the federation from Flower's run configuration.
        on_end: called with the run after its last round, while the nodes can still be asked.

    Raises:
        ImportError: Flower is not installed.
    """
    from flwr.serverapp import ServerApp

    from bcfl.flower.grid import FlowerGrid

    app = ServerApp()

    def main(grid: ServerGrid, context: Context) -> None:
        config = dict(context.run_config)
        on_end(serve(FlowerGrid(grid), deployment(config), config))

    app.main()(main)
    return app


def serve(grid: Grid, plan: Deployment, config: Mapping[str, Any]) -> Run:
    """Do the rounds of a federation that are left, over a grid.

    Args:
        grid: reaches the nodes.
        plan: the federation.
        config: run configuration, from which the nodes build the same federation.
    """
    executor = RemoteExecutor(
        grid=grid,
        setup=json.dumps(dict(config), sort_keys=True),
        digest=model_digest(plan.network),
        deadline=plan.deadline,
        patience=max(plan.wait, PATIENCE),
    )
    for name in (block.name for block in plan.network.blocks if block.scope == "client"):
        LOG.warning("block %r of a client's model travels to the server, which keeps it", name)
    LOG.info("run folder %s", plan.folder)
    return plan.run(executor, _show, config)


def _show(record: RoundRecord, row: Row) -> None:
    name = next(iter(metrics.SCORES[record.likelihood]))
    score = row[name]
    LOG.info(
        "round %d: %d clients took part, %s %s, %d failures, %.1f s",
        record.round,
        len(record.participants),
        name,
        "unknown" if score is None else f"{score:.3f}",
        len(record.ledger.failures),
        row["seconds"]["total"],
    )


def read_client(config: Mapping[str, Any]) -> ClientData:
    """The samples of a node's client, from an `.npz` file or a folder of `.npy` files.

    Either holds the arrays `x_train` and `y_train`, and `x_test` and `y_test` if there are test
    samples; those of later time steps are named `x_train_1`, `y_train_1` and so on.

    Args:
        config: of the node: `client`, its name, and `data`, the path.

    Raises:
        ValueError: a key is missing, or the arrays do not fit each other.
        OSError: the path cannot be read.
    """
    for key in ("client", "data"):
        if key not in config:
            raise ValueError(f"the node's configuration must hold {key!r}, got {sorted(config)}")
    path = Path(str(config["data"])).expanduser()
    if path.is_dir():
        arrays = {file.stem: np.load(file, allow_pickle=False) for file in path.glob("*.npy")}
    else:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    if "x_train" not in arrays or "y_train" not in arrays:
        raise ValueError(f"{path} must hold x_train and y_train, got {sorted(arrays)}")
    return _client(str(config["client"]), arrays)


def read_privacy(config: Mapping[str, Any]) -> Privacy | None:
    """The privacy that a run configuration asks for in its table `privacy`; None if it has none.

    Args:
        config: of the run, in which Flower names the keys of a table `privacy.clip` and so on.

    Raises:
        ValueError: a key is unknown, or a number out of range.
    """
    table = {
        key.removeprefix(PRIVACY): value for key, value in config.items() if key.startswith(PRIVACY)
    }
    known = [field.name for field in fields(Privacy)]
    for key in table:
        if key not in known:
            raise ValueError(f"[privacy] has no key {key!r}; it has {', '.join(known)}")
    return Privacy(**table) if table else None


def _client(name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> ClientData:
    views = {}
    for inputs in (key for key in arrays if key.startswith("x_")):
        kind, _, step = inputs.removeprefix("x_").partition("_")
        targets = f"y_{inputs.removeprefix('x_')}"
        if targets not in arrays:
            raise ValueError(f"client {name!r} has {inputs} without {targets}")
        view = View.from_arrays(arrays[inputs], arrays[targets])
        views[f"{kind}:{step}" if step else kind] = view
    return ClientData(name, views)
