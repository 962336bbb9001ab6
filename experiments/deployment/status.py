"""How far a deployed federation is, from its run folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from experiments.runs.files import Pair
from experiments.runs.index import read_index
from experiments.runs.plan import FolderError

SHOWN = 5
"""Rounds and failures that are listed."""


def status_lines(folder: Path) -> list[str]:
    """Rounds done, the newest ones, failures, and the checkpoint from which a run goes on.

    Args:
        folder: run folder of the server.

    Raises:
        ValueError: there is no run in it.
    """
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "doesn't exist"
        raise FolderError(
            f"{folder} {what}; give a folder that `bcfl federation init` wrote, or that of a run"
        )
    try:
        pairs = read_index(folder).pairs
    except FolderError:
        pairs = ()
    lines = [line for pair in pairs for line in _of(folder, pair, len(pairs) > 1)]
    if not lines:
        raise ValueError(f"{folder} holds no round of a deployed federation yet")
    return lines


def _of(folder: Path, pair: Pair, among_others: bool) -> list[str]:
    """Lines of one method and seed; none before its first round."""
    from bcfl.flower import DeploymentFolder
    from bcfl.rounds import checkpoint

    deployed = DeploymentFolder(folder, pair.method, pair.seed)
    files, rows = deployed.files, deployed.rows()
    if not rows:
        return []
    newest = checkpoint.newest(files.checkpoints)
    lines = [f"{pair}"] if among_others else []
    lines += [_line(row) for row in rows[-SHOWN:]]
    failures = Counter(text for row in rows for text in row["failures"])
    lines += [f"failed   {count} times {text}" for text, count in failures.most_common(SHOWN)]
    lines.append(f"resumes  from {newest.name if newest else 'the beginning'} in {files.folder}")
    return lines


def _line(row: dict[str, Any]) -> str:
    traffic, accuracy, rmse = row["traffic"], row.get("accuracy"), row.get("rmse")
    score = f"accuracy {'unknown' if accuracy is None else f'{100 * accuracy:.1f}'}"
    if rmse is not None:
        score = f"RMSE {rmse:.3g}"
    return (
        f"round {row['round']:4}   {row['participants']} clients took part, "
        f"{len(row['connected'])} connected   "
        f"{score}   "
        f"clusters {row['cluster_sizes']}   "
        f"{traffic['bytes_down'] / 1e6:.2f} MB down, {traffic['bytes_up'] / 1e6:.2f} MB up   "
        f"{row['seconds']['total']:.1f} s"
    )
