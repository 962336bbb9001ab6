"""Figures of the report on the posterior over associations, each with a caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import (
    MOST_UNCERTAIN,
    NARROW,
    draw_association_reliability,
    draw_uncertain_clients,
)
from experiments.reports.pictures import trust_tips
from experiments.reports.pictures.drawing import Picture
from experiments.runs.run_folder import RunFolder

MOST_PAIRED = 400
"""Clients whose pairs are counted."""


def association_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """Figures by name, None where the run has no data for one."""
    return {"uncertainty": _uncertainty(run), "pairs": _pairs(run)}


def _uncertainty(run: RunFolder) -> Picture | None:
    known = run.memberships()
    shown = {method: rows for method, rows in known.items() if rows.num_uncertain}
    if not known:
        return None
    if not shown:
        return Picture("", "No client is uncertain: each has a cluster of probability above 99 %.")
    certain = [method for method in known if method not in shown]
    look = (
        "Look for clusters that share several clients of one true group: they compete for it."
        if any(rows.groups for rows in shown.values())
        else "Look for clusters that share several clients: they compete for them."
    )
    notes = [
        f"{look} Association probabilities over the kept hypotheses after the last round, with "
        "their entropy; colours of clusters as in the figure of cluster sizes."
    ]
    most = max(rows.num_uncertain for rows in shown.values())
    if most > MOST_UNCERTAIN:
        notes.append(f"Shown: the {MOST_UNCERTAIN} most uncertain of up to {most:,}.")
    if certain:
        notes.append(f"No client is uncertain for {', '.join(certain)}.")
    return Picture.of(
        lambda: draw_uncertain_clients(shown),
        "uncertainty",
        "Association probabilities of uncertain clients, by method",
        " ".join(notes),
        {
            f"membership-{method}-{client}-{cluster}": f"{client}\n{method}: {p:.1%} in cluster "
            f"{cluster}"
            for method, rows in shown.items()
            for client, row in zip(rows.clients, rows.probabilities, strict=True)
            for cluster, p in enumerate(row)
        },
        narrow=lambda: draw_uncertain_clients(shown, width=NARROW),
    )


def _pairs(run: RunFolder) -> Picture | None:
    from bcfl.analysis import pairs

    known = {method: run.co_associations(method, MOST_PAIRED) for method in run.methods}
    known = {m: [draw for draw in draws if _has_groups(draw)] for m, draws in known.items()}
    bins = {m: pairs.pair_reliability(draws) for m, draws in known.items() if draws}
    if not bins:
        return None
    scores = {m: [pairs.association_scores(*draw) for draw in known[m]] for m in bins}
    summary = "; ".join(
        f"{m}: {_spread(rows, 'association_nll')} and {_spread(rows, 'association_ece')}"
        for m, rows in scores.items()
    )
    return Picture.of(
        lambda: draw_association_reliability(bins),
        "pairs",
        "Share of pairs of one true group against their co-association probability, by method",
        "Look for points below the diagonal at the right (pairs joined too confidently) and above "
        "it at the left (pairs parted too confidently). Above each panel: pairs in a bin, over all "
        "seeds; bars: 90 % intervals of a bootstrap over clients. Log loss (nats per pair) and "
        f"expected calibration error: {summary}.",
        trust_tips.pair_tips(bins),
        narrow=lambda: draw_association_reliability(bins, columns=1),
    )


def _has_groups(draw: tuple[NDArray[np.float64], list[int | None]]) -> bool:
    return sum(group is not None for group in draw[1]) > 1


def _spread(rows: Sequence[Mapping[str, float]], name: str) -> str:
    """Mean and, of several seeds, the lowest and highest value of a score."""
    values = [row[name] for row in rows]
    mean = f"{np.mean(values):.2f}"
    return f"{mean} ({min(values):.2f}–{max(values):.2f})" if len(values) > 1 else mean
