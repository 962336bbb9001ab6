"""The folder of a federation on Flower, ready to start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.deployment.certificates import LOOPBACK, Authority, write_node_key

if TYPE_CHECKING:
    from bcfl.executors import Privacy

TEMPLATES = Path(__file__).parent / "templates"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
FIRST_PORT = 9101
"""Of the nodes' own interfaces on the loopback device, one for each node of a machine."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """A federation to deploy.

    Attributes:
        folder: new, or empty.
        clients: names of the clients, one for each node.
        host: name or address under which nodes reach the server.
        port: of the server.
        privacy: how nodes randomise what they send; None is not at all.

    Raises:
        ValueError: a name repeats or holds other characters, or the port is out of range.
    """

    folder: Path
    clients: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    privacy: Privacy | None = None

    def __post_init__(self) -> None:
        if not self.clients or len(set(self.clients)) < len(self.clients):
            raise ValueError(f"clients must be distinct names, at least one, got {self.clients}")
        for name in (*self.clients, self.host):
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"names of clients and hosts must be letters, digits, '.', '_' or '-', got "
                    f"{name!r}"
                )
        if not 1 <= self.port <= 65535:
            raise ValueError(f"port must lie between 1 and 65535, got {self.port}")

    def node(self, client: str) -> Path:
        """The folder of a client's node, to be carried to its machine."""
        return self.folder / "nodes" / client

    @property
    def run_folder(self) -> Path:
        """Where the server keeps metrics and checkpoints."""
        return self.folder / "run"

    @property
    def app(self) -> Path:
        """The Flower app."""
        return self.folder / "app"

    @property
    def home(self) -> Path:
        """Flower's own folder, with the address of the server."""
        return self.folder / "server" / "flower"


def write_project(project: Project) -> None:
    """Write app, certificates, keys, trial data and start scripts.

    Args:
        project: what to write.

    Raises:
        ValueError: the folder holds something, or `cryptography` is not installed.
    """
    if find_spec("flwr") is None:
        raise ValueError("Flower is not installed: pip install 'bcfl[flower]'")
    folder = project.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} holds files already; give a new or empty folder")
    project.app.mkdir(parents=True)
    project.home.mkdir(parents=True)
    for client in project.clients:
        project.node(client).mkdir(parents=True)
    _write_texts(project)
    authority = Authority.new()
    authority.write(folder / "server")
    authority.issue(folder / "server", "server", (project.host, *LOOPBACK))
    for client in project.clients:
        authority.issue(project.node(client), "loopback", LOOPBACK)
        write_node_key(project.node(client))
    _write_samples(project)


def _write_texts(project: Project) -> None:
    folder = project.folder
    values: dict[str, Any] = {
        "clients": project.clients,
        "host": project.host,
        "port": project.port,
        "folder": folder.resolve(),
        "privacy": project.privacy,
        "run_folder": project.run_folder.resolve(),
    }
    _write("pyproject.toml", project.app / "pyproject.toml", values)
    _write("federation.py", project.app / "federation.py", values)
    _write("config.toml", project.home / "config.toml", values)
    for script in ("superlink.sh", "register.sh", "run.sh"):
        _write(script, folder / script, values)
    for number, client in enumerate(project.clients):
        own = {"client": client, "node_port": FIRST_PORT + number}
        _write("start.sh", project.node(client) / "start.sh", values | own)


def _write(template: str, path: Path, values: dict[str, Any]) -> None:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True
    )
    path.write_text(environment.get_template(f"{template}.jinja").render(values), encoding="utf-8")


def _write_samples(project: Project) -> None:
    """Handwritten digits for each client, upright for one half of them and turned for the other."""
    from experiments import datasets, partitions

    digits = datasets.load("optdigits")
    groups = min(2, len(project.clients))
    parts = partitions.rotated(digits, groups=groups, clients=len(project.clients), seed=0)
    for client, data in zip(project.clients, parts, strict=True):
        arrays = {
            f"{letter}_{name}": values.numpy()
            for name, view in data.views.items()
            for letter, values in (("x", view.inputs), ("y", view.targets))
        }
        np.savez(project.node(client) / "data.npz", **arrays)  # type: ignore[arg-type]
