"""Tables and figures of uncertainty results as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bcfl.analysis import TUNING_GRID
from experiments.reports.page import render_page
from experiments.reports.pictures.drawing import inline_svg
from experiments.reports.pictures.trust import draw_calibration, draw_entropies, draw_risk
from experiments.reports.uncertainty_results import Result
from experiments.reports.uncertainty_table import (
    CALIBRATION,
    DETECTION,
    TEXTS,
    association_table,
    chosen_values,
    table,
)
from experiments.scores.uncertainty_evaluation import ClientPredictions

NOTE = (
    "Tuned: prior precision and temperature minimise the NLL of held-out training samples; if the "
    "run holds none out, of a third of each client's test samples, and the rest is scored. "
    "Scores are means over seeds; figures show the first seed."
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
        lines: sentences below the table.
        svg: figure as an SVG element, or empty.
    """

    id: str
    title: str
    look: str
    cells: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = field(default_factory=tuple)
    svg: str = ""

    @property
    def texts(self) -> int:
        """Number of columns that hold text."""
        return sum(title in TEXTS for title in self.cells[0]) if self.cells else 0


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
        note=NOTE,
        warnings=[*unfinished, *edge_warnings(results)],
        sections=_sections(results),
    )


def edge_warnings(results: Sequence[Result]) -> list[str]:
    """A sentence for each tuned quantity that took a value at an end of its grid."""
    tuned = [result for result in results if result.tuned]
    precisions = {_named(result): result.rule.prior_precision for result in tuned}
    temperatures = {_named(result): result.rule.temperature for result in tuned}
    texts = [
        _at_edge(
            "prior precision",
            precisions,
            TUNING_GRID.prior_precisions,
            " At the upper end predictions ignore that weights are uncertain.",
        ),
        _at_edge("temperature", temperatures, TUNING_GRID.temperatures),
    ]
    return [text for text in texts if text]


def _named(result: Result) -> str:
    return f"{result.pair.method} {result.rule.predictive}, seed {result.pair.seed}"


def _at_edge(
    quantity: str, values: Mapping[str, float | None], grid: Sequence[float], effect: str = ""
) -> str:
    ends = [f"{v:g} ({name})" for name, v in values.items() if v in (grid[0], grid[-1])]
    if not ends:
        return ""
    more = f" and {len(ends) - SHOWN_EDGES} more" if len(ends) > SHOWN_EDGES else ""
    return (
        f"Tuned {quantity} at an end of the values tried, {grid[0]:g} to {grid[-1]:g}: "
        f"{'; '.join(ends[:SHOWN_EDGES])}{more}. A better value may lie beyond.{effect}"
    )


def _sections(results: Sequence[Result]) -> list[Section]:
    shown = _of_first_seed(results)
    look = (
        "Confidence is the probability of the predicted class; on the diagonal it equals accuracy."
    )
    lower = "Error rate of the most confident samples; the thin line marks 5 %. Lower is better."
    separated = "Out-of-distribution samples and noise should have higher entropy than own samples."
    return [
        Section(
            id="calibration",
            title="Calibration and selection",
            look="Accuracy, cover@5% (samples kept at 5 % errors) and risk@80% in %, NLL in nats.",
            cells=table(results, CALIBRATION),
            lines=chosen_values(results),
        ),
        Section(
            id="detection",
            title="Detection",
            look="AUROC, AUPR and FPR95 of detecting misclassified samples by confidence, and "
            "samples of other groups and noise by their out-of-distribution (OOD) score; for the "
            "latter two also AUROC by entropy and by mutual information (MI) of label and model.",
            cells=table(results, DETECTION),
        ),
        Section(
            id="associations",
            title="Associations",
            look="Whether two clients are of one true group, by the probability that they share a "
            "cluster: log loss in nats per pair, Brier score, expected calibration error, AUROC; "
            "with half a 95 % interval over draws where there are several.",
            cells=association_table(results),
        ),
        Section(
            id="reliability",
            title="Reliability",
            look=look,
            svg=inline_svg(lambda: draw_calibration(shown), "reliability", "Reliability"),
        ),
        Section(
            id="risk",
            title="Risk and coverage",
            look=lower,
            svg=inline_svg(lambda: draw_risk(shown), "risk", "Risk against coverage"),
        ),
        Section(
            id="entropies",
            title="Entropies",
            look=separated,
            svg=inline_svg(lambda: draw_entropies(shown), "entropies", "Entropies"),
        ),
    ]


def _of_first_seed(results: Sequence[Result]) -> dict[str, dict[str, ClientPredictions]]:
    """Predictions by method and kind of prediction."""
    shown: dict[str, dict[str, ClientPredictions]] = {}
    for result in results:
        shown.setdefault(result.pair.method, {}).setdefault(result.label, result.predictions)
    return shown
