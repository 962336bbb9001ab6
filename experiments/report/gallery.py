"""The pictures of the report, each with a line that says what to look for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from experiments.report.client_gallery import client_pictures
from experiments.report.descent import HypothesisLineage, several
from experiments.report.family_gallery import family_pictures
from experiments.report.pictures import (
    client_graph,
    clusters,
    cost,
    curves,
    ribbons,
    tree,
    uncertainty,
)
from experiments.report.pictures.drawing import Picture
from experiments.runs.run_folder import RunFolder


def all_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """The pictures of the report by name, None where the run has nothing to show."""
    descents = several(run)
    return {
        "curves": _curves(run),
        "graph": _client_graph(run),
        "sizes": _cluster_sizes(run),
        "ribbons": _ribbons(descents),
        "tree": _tree(descents),
        "hypotheses": _hypotheses(run),
        "uncertainty": _uncertainty(run),
        "cost": _cost(run),
        **client_pictures(run),
        **family_pictures(run),
    }


def _known(run: RunFolder, field: str, factor: float = 1.0) -> curves.Series:
    """A field of the methods that have it, by method."""
    series = {method: run.series(method, field) * factor for method in run.methods}
    return {m: values for m, values in series.items() if np.isfinite(values).any()}


def _curves(run: RunFolder) -> Picture | None:
    wanted = [
        curves.Panel(
            "accuracy", "accuracy, %", _known(run, "accuracy", 100.0), "{:.1f}", zoom=True
        ),
        curves.Panel("ari", "adjusted Rand index", _known(run, "ari"), limits=(-0.03, 1.03)),
    ]
    shown = [panel for panel in wanted if panel.series]
    if not shown:
        return None
    several = any(len(run.seeds(method)) > 1 for method in run.methods)
    band = " Line: mean over seeds, band: smallest to largest." if several else ""
    both = len(shown) == 2
    look = (
        "Look for methods that reach the true groups (index 1) early: their accuracy should rise "
        "with it."
        if both
        else "Look for how early the methods part, and whether they still rise at the end. True "
        "groups are unknown, so there is no index of agreement with them."
    )
    return Picture.of(
        lambda: curves.draw_curves(shown, run.methods),
        "curves",
        "Accuracy and adjusted Rand index over rounds, one line per method",
        f"{look}{band} Numbers are those of the last round; the first may lie below the picture.",
    )


def _client_graph(run: RunFolder) -> Picture | None:
    picture = client_graph.GraphPicture.of(run)
    if picture is None:
        return None
    look = (
        "Look for edges between shapes (groups taken for one) and for rings that fall apart "
        "(one group split)."
        if picture.known_groups
        else "Look for groups of clients that hang together in one method and not in another."
    )
    seed = run.seeds(run.methods[0])[0]
    notes = [
        "Edge width: probability of sharing a cluster, mean over all rounds "
        f"(seed {seed}; edges below {client_graph.LEAST_PROBABILITY:.0%} are left out)."
    ]
    if len(picture.groups) < picture.num_clients:
        notes.append(
            f"Shown are {len(picture.groups)} of {picture.num_clients:,} clients, the same share "
            "of every group."
        )
    return Picture.of(
        lambda: client_graph.draw_client_graphs(picture),
        "graph",
        f"{len(picture.groups)} clients joined by how often they shared a cluster, by method",
        " ".join([look, *notes]),
    )


def _cluster_sizes(run: RunFolder) -> Picture | None:
    sizes = {m: [r.get("cluster_sizes") or [0] for r in run.first(m)] for m in run.methods}
    if not any(any(map(sum, rows)) for rows in sizes.values()):
        return None
    return Picture.of(
        lambda: clusters.draw_cluster_sizes(sizes),
        "sizes",
        "Clients per cluster over rounds, one panel per method",
        "Look for the round after which the bands stay level: clients have stopped moving. "
        "Clusters of the leading hypothesis, first seed; at the right, clients in the last round."
        + _bounds(run),
    )


def _bounds(run: RunFolder) -> str:
    """Which sizes were allowed, in words; nothing where all were."""
    rules = run.scenario.get("federation", {})
    least, most = rules.get("min_cluster_size", 0), rules.get("max_cluster_size", "all")
    if most == "all":
        return f" Every cluster was given at least {least} clients." if least else ""
    return f" Every cluster was given {least} to {most} clients."


def _ribbons(descents: Mapping[str, HypothesisLineage]) -> Picture | None:
    if not descents:
        return None
    return Picture.of(
        lambda: ribbons.draw_ribbons(descents),
        "ribbons",
        "Weights of hypotheses over rounds, stacked, one panel per method",
        "Look for colours that take over: a proposal beat what was believed before. One colour "
        "throughout: variants of one hypothesis. A band's height is the weight of a hypothesis; "
        "methods that never had alternatives are left out.",
    )


def _tree(descents: Mapping[str, HypothesisLineage]) -> Picture | None:
    if not descents:
        return None
    layouts = {method: tree.Layout.of(one) for method, one in descents.items()}
    merged = any(len(node.parents) > 1 for d in descents.values() for node in d.nodes.values())
    notes = [
        "Look for how far back lines meet: what competes at the end has differed since then. Area "
        "of a circle: weight; a line ends where its hypothesis was dropped; colours as above.",
        "Lines that join were merged." if merged else "",
        "Diamonds: proposals that won; small open circles: proposals that lost."
        if any(one.winners or one.dead_proposals for one in descents.values())
        else "",
    ]
    left_out = {m: x.left_out for m, x in layouts.items() if x.left_out}
    counts = ", ".join(f"{number} ({method})" for method, number in left_out.items())
    notes.append(f"Short lines left out: {counts}." if left_out else "")
    return Picture.of(
        lambda: tree.draw_trees(layouts),
        "tree",
        "Hypotheses over rounds, joined to those that they came from, one panel per method",
        " ".join(note for note in notes if note),
    )


def _uncertainty(run: RunFolder) -> Picture | None:
    known = uncertainty.memberships(run)
    shown = {method: one for method, one in known.items() if one.num_uncertain}
    if not known:
        return None
    if not shown:
        return Picture("", "No client is uncertain: each is in one cluster with more than 99 %.")
    sure = [method for method in known if method not in shown]
    notes = [
        "Look for clusters that share several clients of one true group: they compete for it. "
        "Probabilities over the kept hypotheses after the last round and their entropy; colours of "
        "clusters as in the picture of their sizes."
    ]
    most = max(one.num_uncertain for one in shown.values())
    if most > uncertainty.MOST_CLIENTS:
        notes.append(f"The {uncertainty.MOST_CLIENTS} most uncertain of up to {most:,} are shown.")
    if sure:
        notes.append(f"No client is uncertain for {', '.join(sure)}.")
    return Picture.of(
        lambda: uncertainty.draw_uncertainty(shown),
        "uncertainty",
        "Uncertain clients and the probabilities of their clusters, by method",
        " ".join(notes),
    )


def _hypotheses(run: RunFolder) -> Picture | None:
    mass, effective = _known(run, "log_captured_mass"), _known(run, "effective_hypotheses")
    wanted = [
        curves.Panel(
            "mass",
            "log captured mass, nats",
            {m: v for m, v in mass.items() if np.nanmin(v) < -1e-9},
            "{:.1f}",
            zoom=True,
        ),
        curves.Panel(
            "effective",
            "effective number of hypotheses",
            {m: v for m, v in effective.items() if np.nanmax(v) > 1.005},
            "{:.1f}",
            limits=(1.0, 2.0),
        ),
    ]
    shown = [panel for panel in wanted if panel.series]
    if not shown:
        return None
    return Picture.of(
        lambda: curves.draw_curves(shown, run.methods),
        "hypotheses",
        "Captured mass and effective number of hypotheses over rounds",
        "Look at how far below 0 the mass stays: e to that power is the share of the probability "
        "of all associations that the kept ones hold, given the round before. Methods with one "
        "possible association, or one hypothesis, are left out.",
    )


def _cost(run: RunFolder) -> Picture:
    return Picture.of(
        lambda: cost.draw_cost({method: _cost_of(run, method) for method in run.methods}),
        "cost",
        "Bytes per round, trainings requested and run, and seconds by phase, by method",
        "Look for trainings requested but not run: hypotheses that shared them. Means over seeds; "
        "bytes are payload, evaluation not counted.",
    )


def _cost_of(run: RunFolder, method: str) -> cost.Cost:
    phases: Counter[str] = Counter()
    for rounds in run.rounds[method].values():
        for entry in rounds:
            phases.update(entry.get("seconds") or {})
    seeds = len(run.seeds(method))
    return cost.Cost(
        _mean(run.series(method, "bytes_down")),
        _mean(run.series(method, "bytes_up")),
        _mean(np.nansum(run.series(method, "trainings_requested"), axis=1)),
        _mean(np.nansum(run.series(method, "trainings_run"), axis=1)),
        {phase: float(value) / seeds for phase, value in phases.items()},
    )


def _mean(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0
