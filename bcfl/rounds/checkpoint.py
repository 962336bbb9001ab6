"""Checkpoints of the state of a federation.

A checkpoint is a folder `round-000010` with `state.json` (structure, numbers, a checksum) and
`tensors.safetensors`. It is written under another name and renamed, so that a folder of that name
is always whole. Loading gives a state from which the next rounds have the same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from bcfl.rounds.archive import StateReader, StateWriter
from bcfl.rounds.state import FederationState
from bcfl.runtime.folders import as_path

VERSION = 5
KEPT = 2
PREFIX = "round-"


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged, or of another version."""


def save(state: FederationState, folder: str | Path) -> Path:
    """Write a checkpoint of the state and drop all but the two newest.

    Args:
        state: what to save, such as `run.state`.
        folder: of the checkpoints; created if missing.

    Returns:
        The checkpoint's folder.

    Raises:
        TypeError: `state` is none, or a policy's state holds something that JSON cannot.
    """
    from safetensors.torch import save as to_bytes

    if not isinstance(state, FederationState):
        raise TypeError(f"state must be a FederationState, such as run.state, got {state!r}")
    folder = as_path("folder", folder)
    writer = StateWriter()
    structure = writer.structure(state)
    payload = to_bytes(writer.tensors())
    text = json.dumps(
        {"version": VERSION, "sha256": _digest(structure, payload), "state": structure}
    )
    target = folder / f"{PREFIX}{state.round:06d}"
    aside = folder / f".{target.name}.partial"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    _write(aside / "tensors.safetensors", payload)
    _write(aside / "state.json", text.encode())
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    for old in _all(folder)[:-KEPT]:
        shutil.rmtree(old)
    return target


def _digest(structure: object, payload: bytes) -> str:
    """SHA-256 of the structure as JSON, then the tensors."""
    return hashlib.sha256(json.dumps(structure).encode() + payload).hexdigest()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def newest(folder: str | Path) -> Path | None:
    """The newest checkpoint in a folder, or None."""
    folders = _all(as_path("folder", folder))
    return folders[-1] if folders else None


def round_of(checkpoint: Path) -> int:
    """Rounds that were done before a checkpoint."""
    return int(checkpoint.name.removeprefix(PREFIX))


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}[0-9]*")) if folder.is_dir() else []


def load(
    checkpoint: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> FederationState:
    """Read a checkpoint.

    Args:
        checkpoint: the folder that `save` returned.
        device: of the tensors.
        dtype: floating-point type that the tensors must have; None takes any.

    Raises:
        CheckpointError: the checkpoint is missing, damaged, or of another version or type.
    """
    checkpoint = as_path("checkpoint", checkpoint)
    content, payload = _read(checkpoint)
    if content.get("version") != VERSION:
        raise CheckpointError(
            f"checkpoint {checkpoint} has format {content.get('version')!r}, "
            f"this program reads format {VERSION}"
        )
    if _digest(content.get("state"), payload) != content.get("sha256"):
        raise CheckpointError(_damaged(checkpoint, "its checksum does not fit"))
    from safetensors.torch import load as from_bytes

    try:
        tensors = {name: t.to(device) for name, t in from_bytes(payload).items()}
        state = StateReader(tensors).state(content["state"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(_damaged(checkpoint, f"unreadable structure: {error!r}")) from error
    mean = state.hypotheses.best.clusters[0].blocks[0].gaussian.mean
    if dtype is not None and mean.dtype != dtype:
        raise CheckpointError(f"checkpoint {checkpoint} holds {mean.dtype}, not {dtype}")
    return state


def _read(checkpoint: Path) -> tuple[dict[str, Any], bytes]:
    if inside := newest(checkpoint):
        raise CheckpointError(
            f"{checkpoint} is a folder of checkpoints; load one of them, the newest is {inside}"
        )
    if not checkpoint.name.startswith(PREFIX) and not (checkpoint / "state.json").exists():
        raise CheckpointError(f"{checkpoint} is no checkpoint, such as {PREFIX}000010")
    try:
        content = json.loads((checkpoint / "state.json").read_text())
        payload = (checkpoint / "tensors.safetensors").read_bytes()
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(_damaged(checkpoint, str(error))) from error
    if not isinstance(content, dict):
        raise CheckpointError(_damaged(checkpoint, "state.json is no object"))
    return content, payload


def _damaged(checkpoint: Path, why: str) -> str:
    return (
        f"checkpoint {checkpoint} is damaged ({why}); delete this folder to resume from the "
        "checkpoint before it, or from the beginning if there is none"
    )
