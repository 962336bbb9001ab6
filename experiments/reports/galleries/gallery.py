"""The figures of the report, each with a caption."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bcfl import FederationState
from bcfl.drawing import (
    LEAST_PROBABILITY,
    MOST_CLIENTS,
    NARROW,
    GraphPicture,
    HypothesisLineage,
    Memberships,
    draw_client_graphs,
    draw_cluster_sizes,
    draw_hypothesis_weights,
    size_table,
    with_alternatives,
)
from bcfl.hypotheses import LeadingClusters
from experiments.reports.galleries.association_gallery import association_pictures
from experiments.reports.galleries.client_gallery import client_pictures, leading_clusters
from experiments.reports.galleries.family_gallery import family_pictures
from experiments.reports.galleries.score_gallery import recorded, score_pictures
from experiments.reports.pictures import curves, tree
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
    ancestries = with_alternatives(run.lineages())
    sizes = cluster_sizes(run, leading_clusters(states))
    return {
        **score_pictures(run, Stream.of(run).kind),
        "graph": _client_graph(run),
        "sizes": _cluster_sizes(run, sizes),
        "ribbons": _ribbons(ancestries, TimeSteps.of(run)),
        "tree": _tree(ancestries),
        "hypotheses": _hypotheses(run),
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
            served = f"cluster {cluster}" if cluster >= 0 else "no cluster yet"
            if cluster >= 0 and client in sure:
                served += f", probability {sure[client][cluster]:.1%}"
            text = f"{client}\n{method}: {served}" + (
                "" if group is None else f"\n{picture.palette.name(group)}"
            )
            tips.setdefault(f"clients-{method}-group-{label}", []).append((client, text))
    return tips


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


def _ribbons(ancestries: Mapping[str, HypothesisLineage], steps: TimeSteps) -> Picture | None:
    if not ancestries:
        return None
    return Picture.of(
        steps.marked(lambda: draw_hypothesis_weights(ancestries)),
        "ribbons",
        "Weights of hypotheses over rounds, stacked, one panel per method",
        "Look for colours that take over: a proposal displaced the previous hypotheses. One colour "
        "throughout: variants of one hypothesis. Height of a band: weight of a hypothesis. "
        f"Methods that never had alternatives are omitted.{steps.caption}",
        {
            f"round-{method}-{number}": _weights_text(method, number, ancestry)
            for method, ancestry in ancestries.items()
            for number in range(1, ancestry.num_rounds + 1)
        },
        narrow=steps.marked(lambda: draw_hypothesis_weights(ancestries, width=NARROW)),
    )


def _weights_text(method: str, number: int, ancestry: HypothesisLineage) -> str:
    kept = [n for n in ancestry.nodes.values() if n.round == number and n.weight > 0]
    rows = [f"hypothesis {rank}: {node.weight:.1%}" for rank, node in enumerate(kept, start=1)]
    return "\n".join([f"{method}, round {number}", *rows])


def _tree(ancestries: Mapping[str, HypothesisLineage]) -> Picture | None:
    if not ancestries:
        return None
    layouts = {method: tree.Layout.of(ancestry) for method, ancestry in ancestries.items()}
    merged = any(len(node.parents) > 1 for d in ancestries.values() for node in d.nodes.values())
    notes = [
        "Look for the last common ancestor of the lines that reach the end. Area of a circle: "
        "weight; a line ends where its hypothesis was pruned; colours as above.",
        "Joining lines: merged hypotheses." if merged else "",
        "Diamonds: accepted proposals; small open circles: rejected proposals."
        if any(a.accepted_proposals or a.rejected_proposals for a in ancestries.values())
        else "",
    ]
    left_out = {m: x.left_out for m, x in layouts.items() if x.left_out}
    counts = ", ".join(f"{number} ({method})" for method, number in left_out.items())
    notes.append(f"Short lines omitted: {counts}." if left_out else "")
    return Picture.of(
        lambda: tree.draw_trees(layouts),
        "tree",
        "Hypotheses over rounds with edges to their parents, one panel per method",
        " ".join(note for note in notes if note),
        tree.tree_tips(layouts),
        narrow=lambda: tree.draw_trees(layouts, NARROW),
    )


def _hypotheses(run: RunFolder) -> Picture | None:
    mass, effective = (
        recorded(run, "log_captured_mass"),
        recorded(run, "effective_hypotheses"),
    )
    panels = [
        curves.Panel(
            name="mass",
            title="log captured mass, nats",
            series={m: v for m, v in mass.items() if np.nanmin(v) < -1e-9},
            format="{:z.1f}",
            zoom=True,
            least=0.5,
        ),
        curves.Panel(
            name="effective",
            title="effective number of hypotheses",
            series={m: v for m, v in effective.items() if np.nanmax(v) > 1.005},
            format="{:z.1f}",
            limits=(1.0, 2.0),
        ),
    ]
    look = {
        "mass": "Look at how far the mass stays below 0: its exponential is the share of the "
        "posterior mass of all associations that the kept ones capture, given the previous round; "
        "methods that capture all of it are omitted.",
        "effective": f"{'An' if panels[0].series else 'Look for an'} effective number near 1: one "
        "hypothesis has almost all the weight; methods that never keep more than one are omitted.",
    }
    return curves.picture(
        panels,
        run.methods,
        "hypotheses",
        f"{curves.named(panels)} over rounds",
        " ".join(look[panel.name] for panel in panels if panel.series),
        TimeSteps.of(run),
    )
