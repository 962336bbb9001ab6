"""Pictures of what only some families of methods have, each with a line on what to look for."""

from __future__ import annotations

import numpy as np

from experiments.reports.pictures import curves, support, temperature
from experiments.reports.pictures.drawing import Picture
from experiments.runs.run_folder import RunFolder


def family_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """Pictures by name, None where no method of the run has what they show."""
    return {
        "temperature": _temperature(run),
        "segments": _segments(run),
        "support": _support(run),
    }


def _temperature(run: RunFolder) -> Picture | None:
    facts = {m: run.facts(m, "clustering_temperature") for m in run.methods}
    series = {method: values for method, values in facts.items() if np.isfinite(values).any()}
    if not series:
        return None
    several = any(len(run.seeds(method)) > 1 for method in series)
    band = " Line: mean over seeds, band: smallest to largest." if several else ""
    return Picture.of(
        lambda: temperature.draw_temperature(series, run.methods),
        "temperature",
        "Clustering temperature over rounds until clients are clustered, by method",
        "Look for the first rise: there OCFL clusters, and its line ends at a point. The "
        "temperature is high where the clients' updates point apart (0: all alike, 1: opposed)."
        f"{band} Methods that have the same numbers share a line.",
    )


def _segments(run: RunFolder) -> Picture | None:
    personal = {m: run.series(m, "macro_f1") for m in run.methods}
    general = {m: run.series(m, "hold_out_f1") for m in run.methods}
    scores = {
        method: (float(np.nanmean(personal[method])), float(np.nanmean(general[method])))
        for method in run.methods
        if np.isfinite(personal[method]).any() and np.isfinite(general[method]).any()
    }
    if not scores:
        return None
    return Picture.of(
        lambda: curves.draw_segments(scores),
        "segments",
        "F1 on the clients' own test samples and on the held-out set, by method",
        "Look for segments that reach far to the right without leaving the left end behind: models "
        "that suit their clients and still know other classes. Personal: on the clients' own test "
        "samples; general: the same models on samples of all classes that no client holds; the gap "
        "lies between them. Means over all rounds and seeds.",
    )


def _support(run: RunFolder) -> Picture | None:
    found = support.SupportPicture.several(run)
    if not found:
        return None
    crowded = [m for m, one in found.items() if len(one.supports) > support.MOST_LABELS]
    seed = run.seeds(next(iter(found)))[0]
    notes = [
        "Look for arrows that have no arrow back: a cluster lends its devices' work to another "
        "and takes none from it. Circles are clusters after the last round, with their number of "
        "devices; an arrow runs from the supporter to the cluster it supports, with the largest "
        f"p-value of that cluster's devices in the last test (seed {seed}).",
        f"Too many arrows for p-values: {', '.join(crowded)}." if crowded else "",
    ]
    return Picture.of(
        lambda: support.draw_supports(found),
        "support",
        "Clusters and who supports whom, by method",
        " ".join(note for note in notes if note),
    )
