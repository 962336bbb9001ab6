"""Figures of the hypotheses of a run over rounds, each with a caption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bcfl.drawing import (
    NARROW,
    HypothesisLineage,
    draw_hypothesis_weights,
    lineage_colours,
    lineage_name,
    with_alternatives,
)
from experiments.reports.galleries.score_gallery import recorded
from experiments.reports.pictures import curves, tree
from experiments.reports.pictures.drawing import Picture
from experiments.reports.pictures.time_steps import TimeSteps
from experiments.runs.run_folder import RunFolder

Ancestries = Mapping[str, HypothesisLineage]


def hypothesis_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """Figures by name, None where the run has no data for one.

    Args:
        run: the run.

    Raises:
        NoRunError: a file of the run cannot be read.
    """
    known = run.lineages()
    shown = with_alternatives(known)
    return {
        "ribbons": _ribbons(run, shown, _with_other_seeds(run, known.keys() - shown.keys())),
        "tree": _tree(run, shown),
        "hypotheses": _hypotheses(run),
    }


def _with_other_seeds(run: RunFolder, methods: Iterable[str]) -> str:
    """Which of some methods kept several hypotheses with other seeds than the first."""
    found = {}
    for method in (method for method in run.methods if method in set(methods)):
        others = list(run.rounds[method].items())[1:]
        seeds = [
            str(seed)
            for seed, rounds in others
            if any(len(entry.get("hypothesis_weights") or ()) > 1 for entry in rounds)
        ]
        if seeds:
            found[method] = f"{method} had some with seed{'s' * (len(seeds) > 1)} "
            found[method] += " and ".join(filter(None, [", ".join(seeds[:-1]), seeds[-1]]))
    return ", ".join(found.values())


def num_starts(ancestry: HypothesisLineage) -> int:
    """Number of initial hypotheses.

    Args:
        ancestry: the hypotheses of a method.
    """
    return sum(not node.round for node in ancestry.nodes.values())


def _ribbons(run: RunFolder, ancestries: Ancestries, elsewhere: str) -> Picture | None:
    if not ancestries:
        told = f"No method had alternative hypotheses ({run.seed_shown(run.methods)}); {elsewhere}."
        return Picture("", told) if elsewhere else None
    steps = TimeSteps.of(run)
    omitted = "Methods without alternatives are omitted" + (f"; {elsewhere}." if elsewhere else ".")
    return Picture.of(
        steps.marked(lambda: draw_hypothesis_weights(ancestries)),
        "ribbons",
        "Weights of hypotheses over rounds, stacked, one panel per method",
        f"{_look_of_ribbons(ancestries)} Height of a band: weight of a hypothesis "
        f"({run.seed_shown(ancestries)}). {omitted}{steps.caption}",
        {
            f"round-{method}-{number}": text
            for method, ancestry in ancestries.items()
            for number, text in enumerate(weights_texts(method, ancestry), start=1)
        },
        narrow=steps.marked(lambda: draw_hypothesis_weights(ancestries, width=NARROW)),
    )


def _look_of_ribbons(ancestries: Ancestries) -> str:
    """What there is to see in the weights of these methods."""
    causes = []
    if any(a.accepted_proposals or a.rejected_proposals for a in ancestries.values()):
        causes.append("a proposal displaced the previous hypotheses")
    if any(num_starts(ancestry) > 1 for ancestry in ancestries.values()):
        causes.append("one start outweighs the others")
    variants = "One colour throughout: variants of one hypothesis."
    if not causes:
        return f"Look for a band that takes over: one variant outweighs the others. {variants}"
    look = f"Look for colours that take over: {', or '.join(causes)}."
    alike = any(len({*lineage_colours(a).values()}) == 1 for a in ancestries.values())
    return f"{look} {variants}" if alike else look


def weights_texts(method: str, ancestry: HypothesisLineage) -> list[str]:
    """Weights of the hypotheses of each round, with the lineage where there are several.

    Args:
        method: label of the method.
        ancestry: its hypotheses.
    """
    lineages = {node.name: line.lineage for line in ancestry.lines() for node in line.nodes}
    several, texts = len(lineage_colours(ancestry)) > 1, []
    for number in range(1, ancestry.num_rounds + 1):
        kept = [n for n in ancestry.nodes.values() if n.round == number and n.weight > 0]
        rows = [f"{method}, round {number}"]
        for rank, node in enumerate(kept, start=1):
            origin = f", from {lineage_name(ancestry, lineages[node.name])}" if several else ""
            rows.append(f"rank {rank}: {node.weight:.1%}{origin}")
        texts.append("\n".join(rows))
    return texts


def _tree(run: RunFolder, ancestries: Ancestries) -> Picture | None:
    if not ancestries:
        return None
    layouts = {method: tree.Layout.of(ancestry) for method, ancestry in ancestries.items()}
    merged = any(len(node.parents) > 1 for d in ancestries.values() for node in d.nodes.values())
    notes = [
        f"{_look_of_tree(ancestries)} Area of a circle: weight ({run.seed_shown(ancestries)}); a "
        "line ends where its hypothesis was pruned; colours as above.",
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


def _look_of_tree(ancestries: Ancestries) -> str:
    """What there is to see in the trees of these methods."""
    parallel = [method for method, ancestry in ancestries.items() if num_starts(ancestry) > 1]
    outgrown = "for lines that end, and for the round from which on one has the largest circles"
    if len(parallel) == len(ancestries):
        return f"Look {outgrown}; lines of different starts have no common ancestor."
    look = "Look for the last common ancestor of the lines that reach the end."
    if parallel:
        look += f" The starts of {', '.join(parallel)} have none: look {outgrown}."
    return look


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
        "posterior mass that the kept hypotheses hold, among all associations that continue the "
        f"hypotheses of the previous round.{_without_mass(run, mass, panels[0].series)}",
        "effective": f"{'An' if panels[0].series else 'Look for an'} effective number near 1: one "
        "hypothesis has almost all the weight; methods for which it is 1.0 in all rounds of all "
        "seeds are omitted.",
    }
    return curves.picture(
        panels,
        run.methods,
        "hypotheses",
        f"{curves.named(panels)} over rounds",
        " ".join(look[panel.name] for panel in panels if panel.series),
        TimeSteps.of(run),
    )


def _without_mass(run: RunFolder, mass: curves.Series, shown: curves.Series) -> str:
    """Sentences on the methods whose captured mass is not drawn, empty where all are."""
    whole = ", ".join(m for m in run.methods if m in mass and m not in shown)
    unknown = ", ".join(m for m in run.methods if m not in mass)
    told = [f"Omitted since they hold all of it: {whole}." if whole else ""]
    told.append(f"Omitted since it is not known of them: {unknown}." if unknown else "")
    return "".join(f" {text}" for text in told if text)
