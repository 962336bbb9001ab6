"""What a node does with a message: the work of its clients, by an executor of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch

from bcfl.architecture.model import Model
from bcfl.executors.executor import Executor, Outcome
from bcfl.executors.remote.grid import Payload
from bcfl.executors.remote.messages import (
    CPU,
    FORMAT,
    UnknownModelsError,
    own_arrays,
    pack_answers,
    read,
    unpack_task,
)
from bcfl.executors.remote.plain import Array
from bcfl.protocol.answers import Failure

LOG = logging.getLogger(__name__)
Kept = MutableMapping[str, Mapping[str, Array]]
"""By client, the arrays of its last task, and what it trained there for itself alone.

Losing them costs a message, never a result.
"""


@dataclass(frozen=True, eq=False)
class Site:
    """The clients of a node in one run.

    Attributes:
        executor: has the clients' samples; answers for them.
        clients: names of the clients.
        model: the architecture of the run.
        device: where the executor computes.
    """

    executor: Executor
    clients: tuple[str, ...]
    model: Model
    device: torch.device = CPU


OpenSite = Callable[[str], Site]
"""Opens the site for the setup of a run, as the server sends it with each message."""


def model_digest(model: Model) -> str:
    """A hash of the names, shapes and blocks of a model's tensors."""
    layout = (model.layout.parameters, model.layout.buffers, model.blocks, model.likelihood)
    return blake2b(repr(layout).encode(), digest_size=8).hexdigest()


def respond(payload: Payload, open_site: OpenSite, kept: Kept) -> Payload:
    """The reply to a message.

    What goes wrong is written to the log of the node; the server is told its kind alone, since the
    words of an exception may hold file names or values of samples.

    Args:
        payload: from the server.
        open_site: the clients' samples and the model.
        kept: arrays of earlier messages, by client; changed.
    """
    try:
        content = read(payload)
        site = open_site(content["setup"])
        if "requests" not in content:
            return _greeting(site)
        return _answers(content, payload.arrays, site, kept)
    except UnknownModelsError:
        return _told({"unknown": True})
    except (Exception, SystemExit) as error:
        LOG.exception("a message of the server could not be answered")
        return _told({"crashed": type(error).__name__})


def _told(content: Mapping[str, Any]) -> Payload:
    return Payload(json.dumps({"format": FORMAT, **content}), {})


def _greeting(site: Site) -> Payload:
    return _told({"clients": list(site.clients), "model": model_digest(site.model)})


def _answers(
    content: Mapping[str, Any], arrays: Mapping[str, Array], site: Site, kept: Kept
) -> Payload:
    client, own = content["client"], kept.get(content["client"], {})
    known = {name: own[name] for name in content["arrays"] if name in own}
    task, named = unpack_task(content, {**known, **arrays}, site.device)
    outcomes = site.executor.answer(task.requests, task.models, task.round)
    trained = own_arrays(site.model, list(outcomes.values()))
    kept[client] = named | trained
    missing = Failure("missing", "no answer")
    return pack_answers([_discreet(outcomes.get(r, missing)) for r in task.requests], trained)


def _discreet(outcome: Outcome) -> Outcome:
    """The outcome without the words of an exception, which are logged."""
    if not isinstance(outcome, Failure) or outcome.kind != "crashed":
        return outcome
    LOG.error("a client's work failed: %s", outcome.text)
    return Failure("crashed", f"{outcome.text.partition(':')[0]}, see the log of its node")
