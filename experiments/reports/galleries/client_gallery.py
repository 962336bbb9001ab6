"""Figures of clients: partition, cluster changes and similarity of models.

They are drawn from the newest checkpoints, the data and the recorded local models of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from bcfl import FederationState
from bcfl.analysis import Groups
from bcfl.drawing import NARROW, Palette
from bcfl.hypotheses import LeadingClusters, renumbered
from experiments.reports.local_models import LocalModels, path_of
from experiments.reports.pictures import bubbles, concepts, likeness, moves, neighbours
from experiments.reports.pictures.drawing import Cells, Picture
from experiments.reports.pictures.time_steps import Stream
from experiments.runs.files import Pair
from experiments.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from experiments.partitions import Partition

MOST_CLUSTERS = 24
"""Maximum number of clusters of a heat map."""
SCALE = (
    "Colours go from 0 to 1 whatever the values are; opposed models, below 0, have the colour of 0."
)


def client_pictures(
    run: RunFolder, states: Mapping[str, FederationState]
) -> dict[str, Picture | None]:
    """Figures by name, None where the folder has no data for one.

    Args:
        run: the run.
        states: newest checkpoints of the first seed by method.

    Raises:
        ValueError: a file of local models cannot be read.
    """
    groups, stream, clusters = _groups(run), Stream.of(run), leading_clusters(states)
    return {
        "partition": _partition(run, stream),
        "moves": _moves(run, states, clusters, groups, stream),
        "clusters": _clusters(run, states),
        **_local(run, clusters, groups, stream),
    }


def leading_clusters(states: Mapping[str, FederationState]) -> dict[str, LeadingClusters]:
    """Clusters over rounds by method, without methods that have done no round.

    Args:
        states: newest checkpoints of the first seed by method.
    """
    return {m: LeadingClusters.of(state.history) for m, state in states.items() if state.history}


def _first(run: RunFolder, method: str) -> Pair:
    return Pair(method, run.first_seed(method))


def _groups(run: RunFolder) -> Groups:
    """True groups of the clients as stored in the graphs."""
    for method in run.methods:
        graph = run.graph(method, run.first_seed(method))
        if graph is not None:
            return graph.groups
    return {}


def _partition(run: RunFolder, stream: Stream) -> Picture | None:
    clients = run.clients
    if stream.concepts or (clients is not None and clients.concepts):
        return _stream(run, stream, clients)
    if clients is None:
        return None
    groups, seed = [data.group for data in clients], run.seed_of_clients
    known = clients.groups is not None
    look = (
        "Look for classes that the clients of a true group have in common. Rows of equal circles: "
        "feature shift between groups, no label skew."
        if known
        else "Look for label skew (few classes per client) and quantity skew (unequal totals)."
    )
    counts, names = clients.class_counts(), [data.client for data in clients]
    draw = partial(bubbles.draw_partition, counts, groups, names=clients.group_names)
    return Picture.of(
        draw,
        "partition",
        f"Samples of {len(clients)} clients by class",
        f"{look} Area of a circle: training and test samples of a client in a class (seed {seed}).",
        bubbles.partition_tips(counts, groups, names, clients[0].classes),
        narrow=partial(draw, NARROW) if len(clients) <= bubbles.MOST_NARROW else None,
    )


def _stream(run: RunFolder, stream: Stream, clients: Partition | None) -> Picture:
    """Samples and concepts of the clients of a stream; concepts alone where data are missing."""
    known = stream.concepts if clients is None else clients.concepts
    counts, seed = None, run.seed_of_clients
    look = (
        "Look for rows that differ: there, all clients change their concept."
        if len(set(known.values())) == 1
        else "Look for columns that differ: the concepts of these clients change at other times."
    )
    look += (
        f" Tiles: concept of a client at each time step, counted from 0 (seed {seed}); clients are "
        "sorted by their concepts from the first step on."
    )
    if clients is not None:
        counts = dict(zip((c.client for c in clients), clients.class_counts(), strict=True))
        look += " Area of a circle: training and test samples in a class over all time steps."
    held = () if clients is None else clients.group_names
    draw = partial(concepts.draw_stream, known, counts, names=held)
    steps = max(map(len, known.values()))
    return Picture.of(
        draw,
        "partition",
        f"Samples of {len(known)} clients by class, and their concepts at {steps} time steps"
        if counts
        else f"Concepts of {len(known)} clients at {steps} time steps",
        look,
        concepts.stream_tips(known, counts),
        narrow=partial(draw, NARROW) if len(known) <= bubbles.MOST_NARROW else None,
    )


def _moves(
    run: RunFolder,
    states: Mapping[str, FederationState],
    clusters: Mapping[str, LeadingClusters],
    groups: Groups,
    stream: Stream,
) -> Picture | None:
    several = {method: own for method, own in clusters.items() if own.num_clusters > 1}
    if not several:
        return None
    names = states[next(iter(several))].hypotheses.best.association.clients
    shown = {method: _moves_of(own, names, groups, stream) for method, own in several.items()}
    known = any(map(_is_known, groups.values()))
    absorbed, colours = ("all colours", " Colours: true groups.") if known else ("the others", "")
    look, steps = "Look for late or repeated changes of cluster", stream.steps
    if stream.concepts:
        look = (
            "Look for changes of cluster without a change of colour, changes of colour without one "
            "of cluster"
        )
        colours = " Colours: concept of the client in the time step of a round."
    return Picture.of(
        steps.marked(lambda: moves.draw_moves(shown)),
        "moves",
        "Cluster of each client over rounds, a line per client, one panel per method",
        f"{look}, and for a cluster that absorbs {absorbed}: cluster collapse.{colours} Leading "
        f"hypothesis ({run.seed_shown(several)}); clusters are numbered as in the last round, and "
        "keep their numbers where their models go on; methods with one cluster are "
        f"omitted.{steps.caption}",
        moves.move_tips(shown, names),
        narrow=steps.marked(lambda: moves.draw_moves(shown, columns=1)),
    )


def _is_known(group: int | None) -> bool:
    return group is not None


def _moves_of(
    clusters: LeadingClusters, clients: Sequence[str], groups: Groups, stream: Stream
) -> moves.Moves:
    known = [groups.get(client) for client in clients]
    visited = 1 + max(int(clusters.labels.max()), 0)
    lines = moves.Moves(clusters.labels, visited, known)
    if not stream.concepts:
        return lines
    return replace(
        lines,
        over_rounds=stream.groups(clients)[: len(clusters.labels)],
        palette=stream.palette,
    )


def _clusters(run: RunFolder, states: Mapping[str, FederationState]) -> Picture | None:
    maps = {}
    for method, state in states.items():
        best = state.hypotheses.best
        used = np.flatnonzero(best.association.sizes)
        if 2 <= len(used) <= MOST_CLUSTERS:
            models = [_parameters(state, int(cluster)) for cluster in used]
            maps[method] = likeness.cosines(np.stack(models)), used.tolist()
    if not maps:
        return None
    return Picture.of(
        lambda: likeness.draw_clusters(maps),
        "clusters",
        "Cosine similarity of cluster models, one heat map per method",
        "Look for squares off the diagonal that look like those on it: clusters with almost "
        "identical models. Cosine similarity of all parameters in the last checkpoint, non-empty "
        f"clusters of the leading hypothesis ({run.seed_shown(maps)}). {SCALE}",
        {
            f"likeness-{method}": Cells([f"{method}, cluster {k}" for k in used], cosines, "cosine")
            for method, (cosines, used) in maps.items()
        },
        narrow=lambda: likeness.draw_clusters(maps, columns=1),
    )


def _parameters(state: FederationState, cluster: int) -> likeness.Matrix:
    """(parameters,) float64 parameters of a cluster's model in arbitrary order."""
    blocks = state.hypotheses.best.clusters[cluster].blocks
    means = [block.gaussian.mean.cpu().numpy() for block in blocks]
    return np.concatenate(means).astype(np.float64)


def _local(
    run: RunFolder, clusters: Mapping[str, LeadingClusters], groups: Groups, stream: Stream
) -> dict[str, Picture | None]:
    """Figures of local models of the first method that has some recorded."""
    for method in run.methods:
        recorded = LocalModels.read(path_of(run.path, _first(run, method)))
        if recorded is not None:
            if method in clusters:
                recorded = _in_shared_numbers(recorded, clusters[method])
            found = {
                "neighbours": _neighbours(method, recorded, groups, stream),
                "likeness": _likeness(method, recorded, sorted(groups)),
            }
            seed = run.seed_shown((method,)).capitalize()
            return {
                name: picture and replace(picture, caption=f"{picture.caption} {seed}.")
                for name, picture in found.items()
            }
    return {"neighbours": None, "likeness": None}


def _in_shared_numbers(recorded: LocalModels, clusters: LeadingClusters) -> LocalModels:
    """Local models whose clusters have the numbers that they have in all rounds."""
    rows = [
        renumbered(row, clusters.numbers[number - 1]) if number <= len(clusters.numbers) else row
        for number, row in zip(recorded.rounds.tolist(), recorded.clusters, strict=True)
    ]
    return replace(recorded, clusters=np.stack(rows))


def _neighbours(
    method: str, recorded: LocalModels, groups: Groups, stream: Stream
) -> Picture | None:
    shown, clients = recorded.clusters >= 0, recorded.clusters.shape[1]
    if shown.sum(axis=1).min() < neighbours.FEWEST:
        return None
    named = sorted(groups) if len(groups) == clients else []
    owners = [groups[client] for client in named] or [None] * clients
    rounds = [
        neighbours.Neighbourhood(int(number), gaps[np.ix_(seen, seen)], labels[seen])
        for number, gaps, labels, seen in zip(
            recorded.rounds, recorded.distances, recorded.clusters, shown, strict=True
        )
    ]
    has_groups = any(map(_is_known, owners))
    palette = stream.palette if stream.concepts else Palette().including(owners)
    look, shapes = (
        (
            f"of one colour and one shape: the clusters of {method} match the structure of the "
            "clients' models",
            f"; shapes: {'concepts' if stream.concepts else 'true groups'}",
        )
        if has_groups
        else (f"of one colour: clusters of {method} whose clients have similar models", "")
    )
    of_round = [
        list(
            compress(stream.groups_after(number, named) if stream.concepts and named else owners, s)
        )
        for number, s in zip(recorded.rounds.tolist(), shown, strict=True)
    ]
    names = [list(compress(named, seen)) for seen in shown]
    return Picture.of(
        lambda: neighbours.draw_neighbours(
            rounds, of_round, int(recorded.clusters.max()) + 1, palette
        ),
        "neighbours",
        f"Local models of {method} in two dimensions, one panel per round",
        f"Look for groups of points {look}. t-SNE of the models after local training; colours: "
        f"clusters after the round{shapes}. Distances between groups of points are not meaningful.",
        neighbours.neighbour_tips(rounds, names, of_round, palette) if named else {},
    )


def _likeness(method: str, recorded: LocalModels, clients: Sequence[str]) -> Picture | None:
    labels = recorded.clusters[-1]
    order = np.argsort(np.where(labels < 0, labels.max() + 1, labels), kind="stable")
    order = order[labels[order] >= 0]
    if len(order) < 2:
        return None
    sizes = np.bincount(labels[order]).tolist()
    block = np.ix_(order, order)
    models = recorded.models[-1][block].astype(np.float64)
    updates = recorded.updates[-1][block].astype(np.float64)
    known = clients if len(clients) == len(labels) else list(map(str, range(len(labels))))
    names = [f"{known[i]} (cluster {labels[i]})" for i in order]
    return Picture.of(
        lambda: likeness.draw_clients(models, updates, sizes),
        "likeness",
        f"Cosine similarity of local models and updates of {method}",
        "Look for blocks on the diagonal that stand out: clients in one cluster of "
        f"{method} have similar models, dissimilar to the others. Round "
        f"{int(recorded.rounds[-1])}, clients by cluster. {SCALE}",
        {
            "likeness-models": Cells(names, models, "cosine of models"),
            "likeness-updates": Cells(names, updates, "cosine of updates"),
        },
        narrow=lambda: likeness.draw_clients(models, updates, sizes, columns=1),
    )
