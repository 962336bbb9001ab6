"""Selection of a method, seed and client of a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from bcfl import checkpoint
from bcfl.analysis import rows
from bcfl.runtime import nearest
from experiments.config.variants import Pair
from experiments.runs.files import RunFiles
from experiments.runs.index import Contents, read_contents, read_index
from experiments.runs.run_folder import shares_group
from experiments.runs.summary import of_seed


def choose(folder: Path, method: str | None, seed: int | None) -> tuple[Pair, str]:
    """Select a method and seed, with a note on the choice, which may be empty.

    Args:
        folder: folder of the run.
        method: name; None takes that of the best adjusted Rand index, then accuracy; of accuracy
            alone where all clients share a true group.
        seed: None takes the first.

    Raises:
        ValueError: the run has no such method or seed, or no checkpoint of it yet.
    """
    index, files = read_index(folder), RunFiles(folder)
    index.check(() if method is None else (method,), seed)
    methods = index.methods if method is None else (method,)
    first = {name: next(p.seed for p in index.pairs if p.method == name) for name in methods}
    requested = [Pair(name, first[name] if seed is None else seed) for name in methods]
    ready = [
        pair for pair in requested if checkpoint.newest(files.of(pair).checkpoints) is not None
    ]
    damaged = Contents.of(folder).damaged
    if ready and all(pair in damaged for pair in ready):
        raise damaged[ready[0]]
    read_contents(folder)
    ready = [pair for pair in ready if pair not in damaged]
    if not ready:
        what = f"seed {requested[0].seed}" if method is None else str(requested[0])
        raise ValueError(
            f"there is no checkpoint of {what} in {folder}; run it with: bcfl resume "
            f"{shlex.quote(str(folder))}"
        )
    if len(ready) == 1:
        return ready[0], ""
    named = {"ari": "ARI", "accuracy": "accuracy"}
    if shares_group(folder, index.pairs):
        del named["ari"]
    return _best(ready, files, named)


def _best(pairs: Sequence[Pair], files: RunFiles, named: Mapping[str, str]) -> tuple[Pair, str]:
    scores = {pair: of_seed(rows.read_run(files.of(pair))) for pair in pairs}
    known = [name for name in named if all(s[name] is not None for s in scores.values())]
    best = max(pairs, key=lambda pair: [scores[pair][name] or 0.0 for name in known])
    by = " and ".join(named[name] for name in known)
    others = ", ".join(pair.method for pair in pairs if pair != best)
    return best, f"best method of seed {best.seed} by {by}; --method shows {others}"


def find_client(name: str, clients: Sequence[str]) -> str:
    """The client of a name, or of the number at its end; its position where names have none.

    Args:
        name: name, or number, of a client.
        clients: names of all clients.

    Raises:
        ValueError: no client, or more than one, matches.
    """
    if name in clients:
        return name
    matching = []
    if name.isdecimal():
        ends = {client: re.search(r"(\d+)$", client) for client in clients}
        matching = [c for c, end in ends.items() if end is not None and int(end[1]) == int(name)]
        if not any(ends.values()) and int(name) < len(clients):
            matching = [clients[int(name)]]
    if len(matching) == 1:
        return matching[0]
    raise ValueError(
        f"unknown client {name!r}.{nearest(name, clients)} The run has {len(clients)} clients, "
        f"{clients[0]} to {clients[-1]}"
    )
