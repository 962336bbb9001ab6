"""Figures specific to a family of methods, with captions: OCFL, hold-out F1, FAACL."""

from __future__ import annotations

from functools import partial

import numpy as np

from bcfl.drawing import NARROW
from experiments.reports.pictures import curves, segments, support, temperature
from experiments.reports.pictures.drawing import Picture
from experiments.reports.pictures.time_steps import Stream, TimeSteps
from experiments.runs.run_folder import RunFolder


def family_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """Figures by name, None where no method of the run records their data.

    Raises:
        NoRunError: a support graph cannot be read.
    """
    return {
        "temperature": _temperature(run),
        "segments": _segments(run),
        "support": _support(run),
        "objectives": _objectives(run),
        "bounds": _bounds(run),
    }


def _panel(run: RunFolder, fact: str, title: str) -> curves.Panel:
    facts = {m: run.facts(m, fact) for m in run.methods}
    series = {method: values for method, values in facts.items() if np.isfinite(values).any()}
    return curves.Panel(name=fact, title=title, series=series, format="{:.3g}", zoom=True)


def _objectives(run: RunFolder) -> Picture | None:
    panels = [
        _panel(run, "objective_c", "clustering objective C"),
        _panel(run, "objective_f", "learning objective F, nats"),
    ]
    return curves.picture(
        panels,
        run.methods,
        "objectives",
        "Objectives of clustering and of learning over rounds, by method",
        "Look for whether both fall in every round, which Ma (2023) proves for WeCFL with "
        "small learning rates. C: mean squared distance of local models from the "
        "model of their cluster; F: mean training loss of the clusters' models.",
        TimeSteps.of(run),
    )


def _bounds(run: RunFolder) -> Picture | None:
    panels = [
        _panel(run, "clusterability", "clusterability B"),
        _panel(run, "step_size_bound", "largest learning rate for C to fall"),
    ]
    return curves.picture(
        panels,
        run.methods,
        "bounds",
        "Conditions of convergence over rounds, by method",
        "Look for whether the learning rate lies below its bound. B: largest distance of a "
        "client's update from the mean of its cluster, in units of that mean (0: all alike); "
        "bound: Ma (2023), equation 3.16, with gradients estimated by the updates.",
        TimeSteps.of(run),
    )


def _temperature(run: RunFolder) -> Picture | None:
    facts = {m: run.facts(m, "clustering_temperature") for m in run.methods}
    series = {method: values for method, values in facts.items() if np.isfinite(values).any()}
    if not series:
        return None
    steps, several = TimeSteps.of(run), any(len(run.seeds(method)) > 1 for method in series)
    panel = curves.Panel(
        name="temperature", title="clustering temperature", series=series, points=True
    )
    points = "Points: last round" + (
        " of each seed; line: mean over seeds; band: minimum to maximum." if several else "."
    )
    return Picture.of(
        steps.marked(lambda: temperature.draw_temperature(series, run.methods)),
        "temperature",
        "Clustering temperature over rounds, by method",
        f"{_look(run)} It is high where client updates diverge (0: parallel, 1: opposite), each "
        f"from the model that its client started from. {points} Methods with identical values "
        f"share a line.{steps.caption}",
        curves.round_tips([panel]),
        narrow=steps.marked(lambda: curves.draw_narrow_curves([panel], run.methods)),
    )


def _look(run: RunFolder) -> str:
    """What a rise of the clustering temperature means: where OCFL waits for it, it clusters."""
    at_round = run.scenario.get("federation", {}).get("shot_round") not in (None, "none")
    one_shot = [method for method in run.methods if method.startswith("ocfl-")]
    waiting = [m for m in one_shot if not at_round and "shot_round" not in m]
    if not waiting:
        return "Look for rises of the temperature: updates of clients then agree less."
    names = ", ".join(waiting)
    return f"Look for the first rise of the temperature: it starts the clustering of {names}."


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
        partial(segments.draw_segments, scores),
        "segments",
        "F1 on the clients' test samples and on the hold-out set, by method",
        "Look for segments whose ends both lie far to the right: personalised models that still "
        "generalise. Personal: F1 on the clients' own test samples; general: F1 of the same models "
        "on a hold-out set of all classes; the gap is their difference. Means over all rounds and "
        "seeds.",
        narrow=partial(segments.draw_segments, scores, NARROW),
    )


def _support(run: RunFolder) -> Picture | None:
    graphs = support.SupportPicture.several(run)
    if not graphs:
        return None
    crowded = [m for m, g in graphs.items() if len(g.supports) > support.MOST_LABELS]
    seed = run.seed_shown(graphs)
    notes = [
        "Look for arrows without a reverse arrow: asymmetric support, one cluster contributes to "
        "another and receives nothing. Circles: clusters after the last round with their number "
        "of devices; arrows: from supporter to supported cluster, with the largest p-value over "
        f"the supported cluster's devices in the last test ({seed}).",
        f"p-values omitted for: {', '.join(crowded)}." if crowded else "",
        Stream.of(run).note,
    ]
    return Picture.of(
        lambda: support.draw_supports(graphs),
        "support",
        "Support between clusters, by method",
        " ".join(note for note in notes if note),
        narrow=lambda: support.draw_supports(graphs, columns=1),
    )
