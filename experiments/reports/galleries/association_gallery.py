"""Figures of the report on the posterior over associations, each with a caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from bcfl.analysis import pairs
from bcfl.drawing import (
    LEAST_ENTROPY,
    MOST_UNCERTAIN,
    NARROW,
    draw_association_reliability,
    draw_uncertain_clients,
    pair_bin,
)
from bcfl.runtime import counted
from experiments.reports.pictures import trust_tips
from experiments.reports.pictures.drawing import ClientText, Picture
from experiments.reports.pictures.time_steps import Stream
from experiments.runs.run_folder import RunFolder

MOST_PAIRED = 400
"""Clients whose pairs are counted."""
LEAST_LOSS = 0.005
"""Log loss that rounds to less than 0.01 nats."""
SURE = (
    f"the association of each has an entropy below {LEAST_ENTROPY} nats, and so one cluster more "
    "than 99 %"
)
UNCERTAIN = (
    f"Uncertain are clients with an entropy of at least {LEAST_ENTROPY} nats, that of 99 % in one "
    "cluster and 1 % in another."
)
NOTHING: Mapping[str, int] = MappingProxyType({})


def association_pictures(
    run: RunFolder, num_colours: Mapping[str, int] = NOTHING
) -> dict[str, Picture | None]:
    """Figures by name, None where the run has no data for one.

    Args:
        run: the run.
        num_colours: number of clusters that colours are for by method, if larger than that of the
            last round.
    """
    return {"uncertainty": _uncertainty(run, num_colours), "pairs": _pairs(run)}


def _uncertainty(run: RunFolder, num_colours: Mapping[str, int]) -> Picture | None:
    known = {
        method: replace(rows, num_colours=num_colours.get(method, 0))
        for method, rows in run.memberships().items()
    }
    shown = {method: rows for method, rows in known.items() if rows.num_uncertain}
    if not known:
        return None
    seed, certain = run.seed_shown(known), [method for method in known if method not in shown]
    others = run.uncertain_with_other_seeds(certain)
    elsewhere = ", ".join(
        f"{counted(number, 'client')} of {method} with seed {other}"
        for method, numbers in others.items()
        for other, number in numbers.items()
    )
    elsewhere = elsewhere and f"With other seeds some are: {elsewhere}."
    if not shown:
        sure = f"No client is uncertain ({seed}): {SURE}."
        return Picture("", " ".join(filter(None, [sure, elsewhere])))
    stream = Stream.of(run)
    look = (
        f"Look for clusters that share several clients of one {stream.kind}: they compete for it."
        if any(rows.groups for rows in shown.values())
        else "Look for clusters that share several clients: they compete for them."
    )
    notes = [
        f"{look} Association probabilities over the kept hypotheses after the last round "
        f"({seed}), with their entropy; colours of clusters as in the figure of cluster sizes. "
        f"{UNCERTAIN}"
    ]
    if any(rows.groups for rows in shown.values()):
        notes += filter(None, [stream.note])
    most = max(rows.num_uncertain for rows in shown.values())
    if most > MOST_UNCERTAIN:
        notes.append(f"Shown: the {MOST_UNCERTAIN} most uncertain of up to {most:,}.")
    if certain:
        notes.append(f"No client is uncertain for {', '.join(certain)}.")
    notes += filter(None, [elsewhere])
    return Picture.of(
        lambda: draw_uncertain_clients(shown),
        "uncertainty",
        "Association probabilities of uncertain clients, by method",
        " ".join(notes),
        {
            f"membership-{method}-{client}-{cluster}": ClientText(
                client, f"{client}\n{method}: {p:.1%} in cluster {cluster}"
            )
            for method, rows in shown.items()
            for client, row in zip(rows.clients, rows.probabilities, strict=True)
            for cluster, p in enumerate(row)
        },
        narrow=lambda: draw_uncertain_clients(shown, width=NARROW),
    )


def _pairs(run: RunFolder) -> Picture | None:
    known = {method: run.co_associations(method, MOST_PAIRED) for method in run.methods}
    known = {m: [draw for draw in draws if _has_groups(draw)] for m, draws in known.items()}
    bins = {m: pairs.pair_reliability(draws) for m, draws in known.items() if draws}
    if not bins:
        return None
    scores = {m: [pairs.association_scores(*draw) for draw in known[m]] for m in bins}
    shown = {m: found for m, found in bins.items() if not _is_perfect(found)}
    stream = Stream.of(run)
    alike = all((found.observed == 1).all() for found in bins.values())
    certain = {m: rows for m, rows in scores.items() if m not in shown}
    perfect = _perfect_note(certain, stream.kind, alike=alike)
    if not shown:
        return Picture("", perfect)
    notes = {
        m: f"log loss {_spread(scores[m], 'association_nll')}\n"
        f"calibration error {_spread(scores[m], 'association_ece')}"
        for m in shown
    }
    group = "concept" if stream.concepts else "group"
    look = (
        f"All pairs are of one {stream.kind}, so that all points lie at a share of 1: look for "
        "points far to the left (pairs parted too confidently)."
        if alike
        else "Look for points below the diagonal at the right (pairs joined too confidently) and "
        "above it at the left (pairs parted too confidently)."
    )
    caption = (
        f"{look} Above each panel: log loss (nats per pair, "
        "of probabilities between 0.000001 and 0.999999) and expected calibration error, mean over "
        "seeds (in parentheses the lowest and highest). Numbers above the bins count their "
        "pairs, those of all seeds; bars: 90 % intervals of a bootstrap over clients."
    )
    return Picture.of(
        lambda: draw_association_reliability(shown, notes=notes, group=group),
        "pairs",
        f"Share of pairs of one {stream.kind} against their co-association probability, by method",
        " ".join(filter(None, [caption, stream.note, perfect])),
        trust_tips.pair_tips(shown, group),
        narrow=lambda: draw_association_reliability(shown, columns=1, notes=notes, group=group),
    )


def _is_perfect(bins: pairs.PairReliability) -> bool:
    """Whether all pairs are in the outermost bins and each is what it is there held to be."""
    outermost = 0, bins.num_bins - 1
    places = [pair_bin(value, bins.num_bins) for value in bins.predicted]
    return all(
        place in outermost and share == (place == outermost[1])
        for place, share in zip(places, bins.observed, strict=True)
    )


def _perfect_note(
    scores: Mapping[str, Sequence[Mapping[str, float]]], one: str, *, alike: bool
) -> str:
    """A sentence on the methods that need no panel; empty without any.

    Args:
        scores: of these methods.
        one: what a true group is called.
        alike: whether all pairs are of one.
    """
    if not scores:
        return ""
    worst = max(row["association_nll"] for rows in scores.values() for row in rows)
    loss = "below 0.01" if worst < LEAST_LOSS else f"at most {worst:.2f}"
    low = 100 // pairs.BINS
    others = "" if alike else f" and all others one below {low} %,"
    return (
        f"All pairs of one {one} have a probability above {100 - low} % of sharing a cluster,"
        f"{others} for {', '.join(scores)} (log loss {loss} nats per pair)."
    )


def _has_groups(draw: tuple[NDArray[np.float64], list[int | None]]) -> bool:
    return sum(group is not None for group in draw[1]) > 1


def _spread(rows: Sequence[Mapping[str, float]], name: str) -> str:
    """Mean and, where seeds differ, the lowest and highest value of a score."""
    values = [row[name] for row in rows]
    mean = f"{np.mean(values):.2f}"
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"{mean} ({low}–{high})" if low != high else mean
