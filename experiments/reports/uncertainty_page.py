"""Tables and figures of uncertainty results as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bcfl.analysis import NOISE_GRID, TUNING_GRID
from experiments.reports.page import render_page
from experiments.reports.pictures.drawing import inline_svg, with_tips
from experiments.reports.pictures.trust import (
    draw_calibration,
    draw_coverage,
    draw_entropies,
    draw_ood_scores,
    draw_risk,
)
from experiments.reports.pictures.trust_tips import (
    calibration_tips,
    coverage_tips,
    entropy_tips,
    ood_tips,
    risk_tips,
)
from experiments.reports.report import stand_ins
from experiments.reports.uncertainty_results import Result, step_notes, worded
from experiments.reports.uncertainty_table import (
    ScoreTable,
    association_table,
    has_others,
    header_groups,
    num_text_columns,
    plain,
    score_tables,
    tuned_seeds,
    tuned_table,
)
from experiments.scores.client_predictions import ClientPredictions, ClientValues, Predicted

TUNED = (
    "The rows called tuned choose the temperature and the prior precision (for regression, the "
    "noise variance as well) that minimise the NLL of held-out training samples. If the run holds "
    "none out, a third of each client's test samples is used for this, and the rest is scored. "
    "Without tuning only plug-in is shown, for comparison; bcfl uncertainty --no-tune shows the "
    "other predictions untuned. "
)
SHOWN_EDGES = 4


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page.

    Attributes:
        id: anchor.
        title: heading.
        look: how to read the table or figure.
        cells: table, header first.
        groups: headings above those of the last columns, with their numbers of columns.
        tuned: second table, of tuned values, header first.
        tuned_seeds: order of the seeds in it.
        svg: figure as an SVG element, or empty.
    """

    id: str
    title: str
    look: str
    cells: Sequence[Sequence[str]] = ()
    groups: Sequence[tuple[str, int]] = ()
    tuned: Sequence[Sequence[str]] = ()
    tuned_seeds: Sequence[int] = ()
    svg: str = ""

    @property
    def texts(self) -> int:
        """Number of columns that hold text."""
        return num_text_columns(self.cells)


def render(name: str, results: Sequence[Result], unfinished: Sequence[str] = ()) -> str:
    """Render the page as HTML.

    Args:
        name: name of the run.
        results: at least one result.
        unfinished: sentences on methods and seeds whose rounds are not all done.
    """
    return render_page(
        "uncertainty.html.jinja",
        f"{name} – uncertainty",
        name=name,
        note="".join(f"{note[0].upper()}{note[1:]}. " for note in step_notes(results))
        + (TUNED if any(result.tuned for result in results) else "")
        + " ".join(filter(None, [_seeds_note(results), stand_ins(_methods(results))])),
        warnings=[*unfinished, *edge_warnings(results)],
        sections=_sections(results),
    )


def _methods(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.pair.method for result in results))


def _seeds_note(results: Sequence[Result]) -> str:
    """Which seeds scores and figures are of."""
    first: dict[str, int] = {}
    for result in results:
        first.setdefault(result.pair.method, result.pair.seed)
    shown = {f"seed {seed}" for seed in first.values()}
    which = shown.pop() if len(shown) == 1 else "the first seed of each method"
    return f"Scores are means over seeds; figures show {which}."


def edge_warnings(results: Sequence[Result]) -> list[str]:
    """A sentence for each tuned quantity that took a value at an end of its grid."""
    tuned = {_named(result): result for result in results if result.tuned}
    numbers = {name for name, result in tuned.items() if result.predictions.kind == "gaussian"}
    precisions = {name: result.rule.prior_precision for name, result in tuned.items()}
    temperatures = {name: result.rule.temperature for name, result in tuned.items()}
    texts = [
        _at_edge(
            "prior precision",
            precisions,
            TUNING_GRID.prior_precisions,
            " At the upper end predictions ignore that weights are uncertain.",
        ),
        _at_edge(
            "temperature",
            {name: value for name, value in temperatures.items() if name not in numbers},
            TUNING_GRID.temperatures,
        ),
        _at_edge(
            "noise variance",
            {name: temperatures[name] for name in sorted(numbers)},
            NOISE_GRID.temperatures,
        ),
    ]
    return [text for text in texts if text]


def _named(result: Result) -> str:
    return f"{result.pair.method} {result.rule.predictive}, seed {result.pair.seed}"


def _at_edge(
    quantity: str, values: Mapping[str, float | None], grid: Sequence[float], effect: str = ""
) -> str:
    ends = [f"{plain(v)} ({name})" for name, v in values.items() if v in (grid[0], grid[-1])]
    if not ends:
        return ""
    more = f" and {len(ends) - SHOWN_EDGES} more" if len(ends) > SHOWN_EDGES else ""
    return (
        f"Tuned {quantity} at an end of the values tried, {plain(grid[0])} to {plain(grid[-1])}: "
        f"{'; '.join(ends[:SHOWN_EDGES])}{more}. A better value may lie beyond.{effect}"
    )


def _sections(results: Sequence[Result]) -> list[Section]:
    tables = [_section(one) for one in score_tables(results)]
    tuned, seeds = tuned_table(results), tuned_seeds(results)
    tables[0] = replace(tables[0], tuned=tuned, tuned_seeds=seeds)
    return [*tables, *_associations(results), *_figures(results)]


def _associations(results: Sequence[Result]) -> list[Section]:
    """The section on pairs of clients; none where their groups are unknown."""
    cells = association_table(results)
    if not cells:
        return []
    rated = "AUROC" in cells[0]
    look = (
        "Whether two clients are of one true group, by the probability that they share a cluster: "
        f"log loss in nats per pair, Brier score, expected calibration error{', AUROC' * rated}; "
        "± half a 95 % interval over draws where there are several (in the report, ± is a standard "
        "deviation)."
    )
    if not rated:
        look += (
            " All pairs are of one true group, or all of different ones, so that there is no AUROC."
        )
    return [
        Section(id="associations", title="Associations", look=worded(look, results), cells=cells)
    ]


def _section(table: ScoreTable) -> Section:
    head, groups = header_groups(table.cells[0])
    cells = [head, *table.cells[1:]]
    return Section(id=table.id, title=table.title, look=table.look, cells=cells, groups=groups)


def _figures(results: Sequence[Result]) -> list[Section]:
    shown = _of_first_seed(results, ClientPredictions)
    values = _of_first_seed(results, ClientValues)
    every: dict[str, Mapping[str, Predicted]] = {**shown, **values}
    group = worded("group", results)
    others = f"Samples of other {group}s and noise" if has_others(results) else "Noise"
    drawn = [
        (
            "reliability",
            "Reliability",
            "Confidence is the probability of the predicted class, or that a label is present; on "
            "the diagonal it equals the share that is right, or present. Bars: 95 % intervals "
            "after Wilson; grey numbers above a panel: samples in a bin, a row for each kind of "
            "prediction.",
            lambda: draw_calibration(shown),
            calibration_tips(shown),
        ),
        (
            "coverage",
            "Coverage of intervals",
            "Share of values inside central predictive intervals; on the diagonal it equals their "
            "probability, below it predictions are too narrow.",
            lambda: draw_coverage(values),
            coverage_tips(values),
        ),
        (
            "risk",
            "Risk and coverage",
            "Error rate of the most confident samples, where one wrong label is an error; the thin "
            "line marks 5 %. Lower is better.",
            lambda: draw_risk(shown),
            risk_tips(shown),
        ),
        (
            "scores",
            "Out-of-distribution scores",
            f"{others} should have higher scores than own samples: the less the histograms "
            "overlap, the better they are detected. The outermost bins hold all scores beyond.",
            lambda: draw_ood_scores(every, group),
            ood_tips(every, group),
        ),
        (
            "entropies",
            "Entropies",
            f"{others} should have higher entropy than own samples.",
            lambda: draw_entropies(shown, group),
            entropy_tips(shown, group),
        ),
    ]
    return [
        Section(
            id=name,
            title=title,
            look=look,
            svg=with_tips(inline_svg(draw, name, title), name, tips),
        )
        for name, title, look, draw, tips in drawn
        if tips
    ]


Kind = TypeVar("Kind", bound=Predicted)


def _of_first_seed(results: Sequence[Result], kind: type[Kind]) -> dict[str, dict[str, Kind]]:
    """Predictions of a kind by method and prediction rule."""
    shown: dict[str, dict[str, Kind]] = {}
    for result in results:
        if isinstance(result.predictions, kind):
            shown.setdefault(result.pair.method, {}).setdefault(result.label, result.predictions)
    return shown
