"""Requests and the models that they name as one message; answers as another."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.remote.grid import Payload, Purpose
from bcfl.executors.remote.plain import Array, Json, of_plain, to_array, to_plain, to_tensor
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Describe, Request, Score, Train
from posteriors import DiagonalGaussian

FORMAT = 1
NAME = 16
"""Bytes of an array's name."""
CPU = torch.device("cpu")
PRECISIONS = ("posterior", "prior", "base")


class UnknownModelsError(Exception):
    """A message names arrays that it does not hold and that the receiver does not keep."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What a client is asked in one exchange.

    Attributes:
        client: name of the client.
        round: number of the round.
        requests: to this client, in the order of the answers.
        models: posteriors by the keys that the requests name.
    """

    client: str
    round: int
    requests: tuple[Request, ...]
    models: Mapping[str, Posterior]

    @property
    def purpose(self) -> Purpose:
        """`train` where a request is a training, else `score`."""
        return "train" if any(isinstance(r, Train) for r in self.requests) else "score"


Table = MutableMapping[tuple[str, str], tuple[str, Array]]
"""Name and numbers of what an exchange sends, by key of a block and what of it."""


def array_name(array: Array) -> str:
    """The name of an array by its content: equal names, equal numbers."""
    content = blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=NAME)
    content.update(array.tobytes())
    return content.hexdigest()


def task_arrays(task: Task, table: Table) -> tuple[Json, dict[str, Array]]:
    """The models of a task as a description, and arrays by name.

    Of each block the mean and the running statistics are sent, once however many models share it;
    precisions that are vectors only where a request reads them.

    Args:
        task: for one client.
        table: of the exchange, extended.
    """
    needed = _needed(task.requests)
    arrays: dict[str, Array] = {}
    blocks: dict[str, Json] = {}
    models: dict[str, list[str]] = {}

    def named(block: Block, part: str, tensor: Tensor) -> str:
        if (block.key, part) not in table:
            array = to_array(tensor)
            table[block.key, part] = array_name(array), array
        name, array = table[block.key, part]
        arrays[name] = array
        return name

    for key in needed:
        models[key] = [block.key for block in task.models[key].blocks]
        for block in task.models[key].blocks:
            known = blocks.setdefault(block.key, {"name": block.name, "zero": block.is_zero})
            known["mean"] = named(block, "mean", block.gaussian.mean)
            known["buffers"] = named(block, "buffers", block.buffers)
            for part in PRECISIONS:
                precision = _gaussian(block, part).precision
                if precision.numel() == 1:
                    known[part] = precision.item()
                elif part in needed[key]:
                    known[part] = named(block, part, precision)
    return {"models": models, "blocks": blocks}, arrays


def _needed(requests: Iterable[Request]) -> dict[str, set[str]]:
    """By key of a model, the precisions of it that some request reads."""
    needed: dict[str, set[str]] = {}
    for request in requests:
        for key in () if isinstance(request, Describe) else request.models:
            reads = needed.setdefault(key, set())
            if isinstance(request, Score) and request.statistic.reads_precision:
                reads |= {"posterior", "base"}
        if isinstance(request, Train):
            objective = request.objective
            if objective.prior_weight > 0 or objective.fits_posterior:
                needed[request.start].add("prior")
    return needed


def _gaussian(block: Block, name: str) -> DiagonalGaussian:
    return {"posterior": block.gaussian, "prior": block.prior, "base": block.base}[name]


def pack_task(
    setup: str, task: Task, kept: Collection[str], table: Table
) -> tuple[Payload, frozenset[str]]:
    """A task as a message, without the arrays that the client keeps.

    Args:
        setup: of the run, by which the client finds its model and samples.
        task: for one client.
        kept: names of arrays that the client keeps.
        table: of the exchange, extended.

    Returns:
        The message, and the names of all arrays of the task: the client keeps those.
    """
    described, arrays = task_arrays(task, table)
    sent = {name: array for name, array in arrays.items() if name not in kept}
    content = {
        "format": FORMAT,
        "setup": setup,
        "client": task.client,
        "round": task.round,
        "requests": [to_plain(request, sent) for request in task.requests],
        "arrays": sorted(arrays),
        **described,
    }
    return Payload(json.dumps(content), sent), frozenset(arrays)


def unpack_task(
    content: Mapping[str, Any], arrays: Mapping[str, Array], device: torch.device = CPU
) -> tuple[Task, dict[str, Array]]:
    """The task of a message.

    Args:
        content: the message's JSON.
        arrays: that came with it, and those that the client keeps.
        device: of the models.

    Returns:
        The task, and its arrays, which the client keeps until the next task.

    Raises:
        UnknownModelsError: an array is neither there nor kept.
    """
    names = content["arrays"]
    if not all(name in arrays for name in names):
        raise UnknownModelsError
    described = content["blocks"]
    blocks = {key: _block(key, described[key], arrays, device) for key in described}
    task = Task(
        client=content["client"],
        round=content["round"],
        requests=tuple(of_plain(plain, arrays) for plain in content["requests"]),
        models={
            key: Posterior(tuple(blocks[block] for block in keys))
            for key, keys in content["models"].items()
        },
    )
    return task, {name: arrays[name] for name in names}


def _block(
    key: str, described: Mapping[str, Any], arrays: Mapping[str, Array], device: torch.device
) -> Block:
    mean = to_tensor(arrays[described["mean"]]).to(device)

    @cache
    def around(known: str | float) -> DiagonalGaussian:
        if isinstance(known, str):
            return DiagonalGaussian(mean, to_tensor(arrays[known]).to(device))
        return DiagonalGaussian(mean, torch.tensor(known, dtype=mean.dtype, device=device))

    def gaussian(part: str) -> DiagonalGaussian:
        return around(described.get(part, 0.0))  # 0, which is none, where no request reads it

    return Block(
        key=key,
        name=described["name"],
        gaussian=gaussian("posterior"),
        base=gaussian("base"),
        prior=gaussian("prior"),
        buffers=to_tensor(arrays[described["buffers"]]).to(device),
        is_zero=described["zero"],
    )


def own_arrays(model: Model, outcomes: Sequence[object]) -> dict[str, Array]:
    """By name, what a client has trained of the blocks that it alone uses.

    It keeps them, since they come back with the next task.

    Args:
        model: the architecture.
        outcomes: answers of the client.
    """
    own = [block.name for block in model.blocks if block.scope == "client"]
    trained = [outcome for outcome in outcomes if isinstance(outcome, Trained)] if own else []
    parts = [model.split(answer.mean, answer.buffers) for answer in trained]
    arrays = [to_array(tensor) for part in parts for name in own for tensor in part[name]]
    return {array_name(array): array for array in arrays}


def pack_answers(outcomes: Sequence[object], own: Collection[str]) -> Payload:
    """The answers to a task.

    Args:
        outcomes: in the order of the requests.
        own: names of arrays that the client keeps beside those of the task.
    """
    arrays: dict[str, Array] = {}
    plain = [to_plain(outcome, arrays) for outcome in outcomes]
    return Payload(json.dumps({"format": FORMAT, "answers": plain, "own": sorted(own)}), arrays)


def read(payload: Payload) -> Mapping[str, Any]:
    """The JSON of a message.

    Raises:
        ValueError: it is no object of JSON, or of another format.
    """
    content = json.loads(payload.text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"a message must be of format {FORMAT}")
    return content
