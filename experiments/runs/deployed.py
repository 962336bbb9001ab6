"""Runs of deployed federations, whose samples stay with their nodes."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcfl import Federation

DEPLOYMENT = "deployment"
"""Key of `run.json`: settings of each method; there if a server of a deployment wrote the run."""


class SamplesElsewhereError(ValueError):
    """The samples that are asked for stay with the nodes of a deployment."""


def gathered(folder: Path, settings: Mapping[str, Any]) -> Federation:
    """The federation of a trial, whose app and nodes lie beside the run folder.

    Args:
        folder: of the run.
        settings: from which server and nodes built the federation.

    Raises:
        SamplesElsewhereError: the app, or the samples of a node, are not there.
    """
    from bcfl.flower import read_client

    trial = folder.resolve().parent
    app = trial / "app" / "federation.py"
    clients = str(settings.get("clients", "")).split(",")
    samples = {client: trial / "nodes" / client / "data.npz" for client in clients}
    missing = [path for path in (app, *samples.values()) if not path.is_file()]
    if missing:
        raise SamplesElsewhereError(
            f"the samples of a deployed federation stay with its nodes, and {missing[0]} is not on "
            "this machine; `on_end` of bcfl.flower.server_app is given the run while nodes can be "
            "asked"
        )
    plan = runpy.run_path(str(app))["deployment"](settings)
    return plan.federation(  # type: ignore[no-any-return]
        [read_client({"client": client, "data": path}) for client, path in samples.items()]
    )
