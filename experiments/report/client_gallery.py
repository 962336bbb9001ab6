"""Pictures of clients: what they hold, how they moved, how alike their models are.

They need more than the log of a run: its newest checkpoints, its data, its local models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise, starmap

import numpy as np

from bcfl import FederationState
from bcfl.hypotheses.history import Snapshot
from bcfl.rounds.checkpoint import CheckpointError
from experiments.config.variants import Pair
from experiments.datasets import DataError
from experiments.report.local_models import LocalModels, path_of
from experiments.report.pictures import bubbles, likeness, moves, neighbours
from experiments.report.pictures.drawing import Picture
from experiments.runs.plan import FolderError, read_plan
from experiments.runs.restore import newest_state
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import Experiment

Groups = Mapping[str, int | None]
MOST_CLUSTERS = 24
"""More clusters than these make no heat map."""


def client_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """By name, None where the folder has nothing to show.

    Raises:
        ValueError: a file of local models is something else.
    """
    states = _states(run)
    groups = _groups(run)
    return {
        "partition": _partition(run),
        "moves": _moves(states, groups),
        "clusters": _clusters(states),
        **_local(run, groups),
    }


def _states(run: RunFolder) -> dict[str, FederationState]:
    """Newest checkpoints by method, without those that another version of this program wrote."""
    found = {}
    for method in run.methods:
        with suppress(CheckpointError):
            found[method] = newest_state(run.path, _first(run, method))
    return {method: state for method, state in found.items() if state is not None}


def _first(run: RunFolder, method: str) -> Pair:
    return Pair(method, run.seeds(method)[0])


def _groups(run: RunFolder) -> Groups:
    """True groups as the graphs have them."""
    for method in run.methods:
        graph = run.graph(method, run.seeds(method)[0])
        if graph is not None:
            return graph.groups
    return {}


def _partition(run: RunFolder) -> Picture | None:
    try:
        seed = int(run.description["seeds"][0])
        clients = Experiment(read_plan(run.path).scenario, "cpu").partition(seed)
    except (DataError, FolderError, KeyError):
        return None
    groups = [data.group for data in clients]
    known = clients.groups is not None
    look = (
        "Look for what the clients of a true group have in common. Rows of equal circles: groups "
        "differ in their inputs, not in their classes."
        if known
        else "Look for how few classes a client has, and whether some have much more than others."
    )
    return Picture.of(
        lambda: bubbles.draw_partition(clients.class_counts(), groups),
        "partition",
        f"Samples of {len(clients)} clients by class, as circles",
        f"{look} Area of a circle: samples of a client in a class, training and test (seed "
        f"{seed}).",
    )


def _moves(states: Mapping[str, FederationState], groups: Groups) -> Picture | None:
    shown = {method: one for method, state in states.items() if (one := _moves_of(state, groups))}
    if not shown:
        return None
    colours = " Colours: true groups." if any(map(_is_known, groups.values())) else ""
    return Picture.of(
        lambda: moves.draw_moves(shown),
        "moves",
        "Cluster of each client over rounds, a line per client, one panel per method",
        "Look for lines that change lanes late or again and again, and for a lane that fills up "
        f"with all colours: clusters collapse into it.{colours} Leading hypothesis, first seed; "
        "clusters keep the numbers that they have at the end; methods with one are left out.",
    )


def _is_known(group: int | None) -> bool:
    return group is not None


def _moves_of(state: FederationState, groups: Groups) -> moves.Moves | None:
    leading = [snapshot.associations[0] for snapshot in state.history]
    most = max((one.num_clusters for one in leading), default=0)
    if most < 2:
        return None
    labels = np.stack([one.labels for one in leading])
    known = [groups.get(client) for client in leading[0].clients]
    return moves.Moves.of(labels, most, known, list(starmap(_goes_on, pairwise(state.history))))


def _goes_on(before: Snapshot, after: Snapshot) -> bool:
    """Whether the only hypothesis goes on without losing a cluster: their numbers then stay."""
    if len(before.associations) > 1 or len(after.associations) > 1:
        return False
    return after.associations[0].num_clusters >= before.associations[0].num_clusters


def _clusters(states: Mapping[str, FederationState]) -> Picture | None:
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
        "Cosines between the models of clusters, one map per method",
        "Look for dark squares off the diagonal: two clusters with almost one model. Cosines of "
        "all parameters after the last checkpoint, clusters of the leading hypothesis that have "
        "clients.",
    )


def _parameters(state: FederationState, cluster: int) -> likeness.Matrix:
    """All parameters of a cluster's model; their order means nothing."""
    blocks = state.hypotheses.best.clusters[cluster].blocks
    means = [block.gaussian.mean.cpu().numpy() for block in blocks]
    return np.concatenate(means).astype(np.float64)


def _local(run: RunFolder, groups: Groups) -> dict[str, Picture | None]:
    """Pictures of local models, of the first method that has any recorded."""
    for method in run.methods:
        found = LocalModels.read(path_of(run.path, _first(run, method)))
        if found is not None:
            known = [groups.get(client) for client in sorted(groups)]
            return {
                "neighbours": _neighbours(method, found, known),
                "likeness": _likeness(method, found),
            }
    return {"neighbours": None, "likeness": None}


def _neighbours(method: str, found: LocalModels, groups: Sequence[int | None]) -> Picture | None:
    shown, clients = found.clusters >= 0, found.clusters.shape[1]
    if shown.sum(axis=1).min() < neighbours.FEWEST:
        return None
    owners = groups if len(groups) == clients else [None] * clients
    rounds = [
        neighbours.Neighbourhood(int(number), gaps[np.ix_(seen, seen)], labels[seen])
        for number, gaps, labels, seen in zip(
            found.rounds, found.distances, found.clusters, shown, strict=True
        )
    ]
    of_round = [[owner for owner, here in zip(owners, seen, strict=True) if here] for seen in shown]
    return Picture.of(
        lambda: neighbours.draw_neighbours(rounds, of_round, int(found.clusters.max()) + 1),
        "neighbours",
        f"Local models of {method} in two dimensions, one panel per round",
        f"Look for heaps of one colour and one shape: the clusters of {method} are what the "
        "clients' models say they are. t-SNE of the models that clients sent back; colours: "
        "clusters after the round; shapes: true groups. Neighbours are alike; distances between "
        "heaps mean little.",
    )


def _likeness(method: str, found: LocalModels) -> Picture | None:
    labels = found.clusters[-1]
    order = np.argsort(np.where(labels < 0, labels.max() + 1, labels), kind="stable")
    order = order[labels[order] >= 0]
    if len(order) < 2:
        return None
    sizes = np.bincount(labels[order]).tolist()
    block = np.ix_(order, order)
    models = found.models[-1][block].astype(np.float64)
    updates = found.updates[-1][block].astype(np.float64)
    return Picture.of(
        lambda: likeness.draw_clients(models, updates, sizes),
        "likeness",
        f"Cosines between local models of {method}, and between their updates",
        f"Look for dark blocks on the diagonal: clients of one cluster of {method} are alike, and "
        f"unlike the others. Round {int(found.rounds[-1])}, clients by cluster.",
    )
