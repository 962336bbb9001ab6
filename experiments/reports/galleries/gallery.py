"""The figures of the report, each with a caption."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bcfl import FederationState
from bcfl.drawing import (
    LEAST_PROBABILITY,
    MOST_CLIENTS,
    GraphPicture,
    Memberships,
    draw_client_graphs,
    draw_cluster_sizes,
    size_table,
)
from bcfl.hypotheses import LeadingClusters
from experiments.reports.client_report import most_probable
from experiments.reports.galleries.association_gallery import association_pictures
from experiments.reports.galleries.client_gallery import client_pictures, leading_clusters
from experiments.reports.galleries.family_gallery import family_pictures
from experiments.reports.galleries.hypothesis_gallery import hypothesis_pictures
from experiments.reports.galleries.score_gallery import score_pictures
from experiments.reports.pictures.drawing import Picture
from experiments.reports.pictures.time_steps import Stream, TimeSteps
from experiments.runs.run_folder import RunFolder


def all_pictures(
    run: RunFolder, states: Mapping[str, FederationState]
) -> dict[str, Picture | None]:
    """Figures of the report by name, None where the run has no data for one.

    Args:
        run: the run.
        states: newest checkpoints of the first seed by method.

    Raises:
        ValueError: a file of the run cannot be read.
    """
    sizes = cluster_sizes(run, leading_clusters(states))
    return {
        **score_pictures(run, Stream.of(run).kind),
        "graph": _client_graph(run),
        "sizes": _cluster_sizes(run, sizes),
        **hypothesis_pictures(run),
        **association_pictures(run, {m: rows.shape[1] for m, rows in sizes.items()}),
        **client_pictures(run, states),
        **family_pictures(run),
    }


def _client_graph(run: RunFolder) -> Picture | None:
    picture = GraphPicture.of(run.graphs(MOST_CLIENTS))
    if picture is None:
        return None
    look = "Look for sets of clients that are connected under one method and not under another."
    if run.one_group:
        kind = Stream.of(run).kind
        look = f"Look for clients that no edge joins: a {kind} that all clients share is split."
    elif picture.palette.change:
        look = (
            "Look for edges between different shapes (clients of several concepts in one cluster) "
            "and for clients of one shape that no edge joins (a split concept)."
        )
    elif picture.known_groups:
        look = (
            "Look for edges between different shapes (merged groups) and for circles of clients "
            "that fall apart (a split group)."
        )
    seed = run.seed_shown(run.methods)
    notes = [
        "Edge width: probability of sharing a cluster, as believed after the last round "
        f"({seed}; edges below {LEAST_PROBABILITY:.0%} are left out)."
    ]
    if picture.palette.change:
        of_round = Stream.of(run).concepts
        notes.append(
            "Shapes: concepts at the time step of the round. Clients lie in circles by their "
            "concept at the last time step, whichever round is shown."
            if of_round
            else "Shapes: concepts at the last time step, also where earlier rounds are shown."
        )
    if len(picture.groups) < picture.num_clients:
        notes.append(
            f"A subsample of {len(picture.groups)} of {picture.num_clients:,} clients, stratified "
            f"by {'concept' if picture.palette.change else 'group'}."
        )
    return Picture.of(
        lambda: draw_client_graphs(picture),
        "graph",
        f"Association graph of {len(picture.groups)} clients, by method",
        " ".join([look, *notes]),
        _client_tips(picture, run.memberships()),
    )


def _client_tips(
    picture: GraphPicture, beliefs: Mapping[str, Memberships]
) -> dict[str, list[tuple[str, str]]]:
    """Client, true group and cluster of each marker, by id of its group of markers."""
    tips: dict[str, list[tuple[str, str]]] = {}
    for method, graph in picture.graphs.items():
        known = beliefs.get(method)
        sure = dict(zip(known.clients, known.probabilities, strict=True)) if known else {}
        for client in sorted(graph.groups) if graph is not None else ():
            group = graph.groups[client] if graph is not None else None
            label = "unknown" if group is None else str(group)
            cluster = graph.clusters[client] if graph is not None else -1
            served = _served(cluster, sure.get(client))
            text = f"{client}\n{method}: {served}" + (
                "" if group is None else f"\n{picture.palette.name(group)}"
            )
            tips.setdefault(f"clients-{method}-group-{label}", []).append((client, text))
    return tips


def _served(cluster: int, probabilities: NDArray[np.float64] | None) -> str:
    """The cluster of a client in the leading hypothesis, and the most probable one if another is.

    Args:
        cluster: of the client, negative for none.
        probabilities: (clusters,) what is believed of it, None where nothing is known.
    """
    if cluster < 0:
        return "no cluster yet"
    if probabilities is None:
        return f"cluster {cluster}"
    most, chance = most_probable(probabilities, cluster), probabilities[cluster]
    if most == cluster:
        return f"cluster {cluster}, probability {chance:.1%}"
    return (
        f"cluster {cluster} in the leading hypothesis, probability {chance:.1%}\n"
        f"most probable by belief: cluster {most}, probability {probabilities[most]:.1%}"
    )


def cluster_sizes(
    run: RunFolder, clusters: Mapping[str, LeadingClusters]
) -> dict[str, NDArray[np.int64]]:
    """(rounds, clusters) number of clients by method, first seed, with one number per cluster.

    There is a column for every cluster that any figure of the method shows, so that all give it the
    same colour. Rounds after the newest checkpoint have the numbers of their own round.

    Args:
        run: the run.
        clusters: of the newest checkpoints.
    """
    beliefs, found = run.memberships(), {}
    for method in run.methods:
        rows = size_table([r.get("cluster_sizes") or [0] for r in run.first(method)])
        known = clusters[method].sizes[: len(rows)] if method in clusters else rows[:0]
        last = beliefs[method].probabilities.shape[1] if method in beliefs else 0
        found[method] = np.zeros((len(rows), max(rows.shape[1], known.shape[1], last)), np.int64)
        found[method][:, : rows.shape[1]] = rows
        found[method][: len(known)] = 0
        found[method][: len(known), : known.shape[1]] = known
    return found


def _cluster_sizes(run: RunFolder, found: Mapping[str, NDArray[np.int64]]) -> Picture | None:
    sizes = {method: rows.tolist() for method, rows in found.items()}
    if not any(any(map(sum, rows)) for rows in sizes.values()):
        return None
    steps = TimeSteps.of(run)
    within = " until the next time step" if steps.begins else ""
    return Picture.of(
        steps.marked(lambda: draw_cluster_sizes(sizes)),
        "sizes",
        "Clients per cluster over rounds, one panel per method",
        f"Look for the round after which the bands stay level{within}: assignments have converged. "
        f"Clusters of the leading hypothesis ({run.seed_shown(sizes)}); at the right, each "
        f"cluster's number and size in the last round.{_bounds(run)}{steps.caption}",
        {
            f"round-{method}-{number}": "\n".join(
                [f"{method}, round {number}"]
                + [f"cluster {k}: {size}" for k, size in enumerate(row) if size]
            )
            for method, rows in sizes.items()
            for number, row in enumerate(rows, start=1)
        },
        narrow=steps.marked(lambda: draw_cluster_sizes(sizes, columns=1)),
    )


def _bounds(run: RunFolder) -> str:
    """Sentence on the bounds of cluster sizes; empty without bounds."""
    rules = run.scenario.get("federation", {})
    least, most = rules.get("min_cluster_size", 0), rules.get("max_cluster_size", "all")
    if most == "all":
        return f" Cluster sizes were bounded below by {least}." if least else ""
    return f" Cluster sizes were bounded to {least} to {most} clients."
