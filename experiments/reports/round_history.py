"""Associations of the kept hypotheses by round, for the slider of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from warnings import warn

import numpy as np

from bcfl import FederationState
from bcfl.analysis import rows
from bcfl.drawing import (
    LEGEND_SIZE,
    LEVELS,
    MOST_CLIENTS,
    HypothesisLineage,
    edge_opacity,
    edge_width,
    marker_size,
)
from bcfl.hypotheses import Snapshot, cluster_numbers, renumbered
from bcfl.rounds import CheckpointError
from experiments.reports.pictures.time_steps import Stream
from experiments.runs.files import Pair
from experiments.runs.restore import newest_state
from experiments.runs.run_folder import RunFolder

MOST_ROUNDS = 60
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
UNSEEN = "-"


Histories = Mapping[str, Sequence[Snapshot]]
"""Snapshots of all rounds by method."""


@dataclass(frozen=True)
class FirstStates:
    """The newest checkpoint of each method's first seed.

    Attributes:
        states: by method; those without a checkpoint, or with one that cannot be read, are missing.
        unreadable: why checkpoints cannot be read, by method and seed.
    """

    states: Mapping[str, FederationState]
    unreadable: Mapping[Pair, str]

    @classmethod
    def of(cls, run: RunFolder) -> Self:
        """Read the checkpoints of a run.

        Args:
            run: the run.

        Warns:
            DamagedRunWarning: a checkpoint cannot be read.
        """
        states, unreadable = {}, {}
        for method in run.methods:
            pair = Pair(method, run.first_seed(method))
            try:
                state = newest_state(run.path, pair)
            except CheckpointError as error:
                unreadable[pair] = str(error)
                told = f"figures from checkpoints lack {pair}: {error}"
                warn(told, rows.DamagedRunWarning, stacklevel=2)
                continue
            if state is not None:
                states[method] = state
        return cls(states, unreadable)

    @property
    def histories(self) -> Histories:
        """Snapshots of the rounds, of the methods that have any."""
        return {method: state.history for method, state in self.states.items() if state.history}


def history(run: RunFolder, histories: Histories) -> dict[str, Any] | None:
    """Rounds, the look of edges, and by method the weighted partitions of each round, first seed.

    Of a stream there are also the time step of each round, and for the clients that are shown their
    concepts at all time steps. A partition is a text with one letter per client, the cluster, `-`
    for a client that has none. The size of markers is in units of that in the legend.

    Args:
        run: of which the graphs are shown.
        histories: of its methods, see `FirstStates`.

    Returns:
        What `json` can write; None where no method has two rounds.
    """
    if not histories:
        return None
    last = max(snapshots[-1].round for snapshots in histories.values())
    if last < 2:
        return None
    shown = np.unique(np.linspace(1, last, min(last, MOST_ROUNDS)).round().astype(int)).tolist()
    names = run.graphs(MOST_CLIENTS)
    lineages = run.lineages()
    methods = {
        method: of_method(snapshots, shown, names.get(method), lineages.get(method))
        for method, snapshots in histories.items()
    }
    clients = {name for graph in names.values() if graph is not None for name in graph.groups}
    count, stream = max(1, len(clients)), Stream.of(run)
    of_round = stream.steps.of_round
    return {
        "rounds": shown,
        "methods": methods,
        "edges": edges(count),
        "steps": [of_round[min(number, len(of_round)) - 1] for number in shown] if of_round else [],
        "concepts": {
            client: stream.concepts[client] for client in sorted(clients & stream.concepts.keys())
        },
        "size": round(marker_size(count) / LEGEND_SIZE, 3),
    }


def edges(clients: int) -> list[tuple[float, float]]:
    """Width in points and opacity of edges by level of probability, as in the figure.

    Args:
        clients: number of clients in a panel.
    """
    shares = [level / LEVELS for level in range(1, LEVELS + 1)]
    return [(round(edge_width(p, clients), 3), round(edge_opacity(p, clients), 4)) for p in shares]


def has_alternatives(known: Mapping[str, Any]) -> bool:
    """Whether a method ever kept several hypotheses, of which a page may show a single one.

    Args:
        known: what `history` returns.
    """
    entries = (entry for method in known["methods"].values() for entry in method["kept"])
    return any(len(entry["weights"]) > 1 for entry in entries)


def of_method(
    snapshots: Sequence[Snapshot],
    rounds: Sequence[int],
    shown: Any,  # noqa: ANN401
    ancestry: HypothesisLineage | None,
) -> dict[str, Any]:
    """Partitions and weights of one method.

    Args:
        snapshots: of all its rounds.
        rounds: which of them are kept.
        shown: its graph, whose clients are kept; None keeps all.
        ancestry: lineage of its hypotheses, None where unknown.
    """
    clients = snapshots[-1].associations[0].clients
    kept = [row for row, name in enumerate(clients) if shown is None or name in shown.groups]
    lines = {} if ancestry is None else line_of_node(ancestry)
    known: dict[str, int] = {}
    numbered = zip(snapshots, cluster_numbers(snapshots), strict=True)
    by_round = {snapshot.round: (snapshot, numbers) for snapshot, numbers in numbered}
    entries: list[dict[str, list[Any]]] = []
    for number in rounds:
        if number not in by_round:
            entries.append({"weights": [], "labels": [], "lines": []})
            continue
        snapshot, numbers = by_round[number]
        texts = [
            letters(renumbered(association.labels[kept], own).tolist())
            for association, own in zip(snapshot.associations, numbers, strict=False)
        ]
        entries.append(
            {
                "weights": np.exp(snapshot.log_weights).round(4).tolist(),
                "labels": [known.setdefault(text, len(known)) for text in texts],
                "lines": [lines.get(f"r{number}h{rank}") for rank in range(len(texts))],
            }
        )
    places = {clients[row]: place for place, row in enumerate(kept)}
    return {"places": places, "partitions": list(known), "kept": entries}


def letters(labels: Sequence[int]) -> str:
    """One letter per client; beyond 62 clusters, characters of Unicode's private area.

    Args:
        labels: cluster of each client, -1 for none.
    """
    return "".join(
        UNSEEN if k < 0 else DIGITS[k] if k < len(DIGITS) else chr(0xE000 + k) for k in labels
    )


def line_of_node(ancestry: HypothesisLineage) -> Mapping[str, str]:
    """Name of the first node of the line that each node belongs to.

    Args:
        ancestry: lineage of the hypotheses of a method.
    """
    return {node.name: line.first.name for line in ancestry.lines() for node in line.nodes}
