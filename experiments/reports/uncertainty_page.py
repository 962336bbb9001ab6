"""Tables and figures of uncertainty results as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

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


def render(name: str, results: Sequence[Result]) -> str:
    """Render the page as HTML.

    Args:
        name: name of the run.
        results: at least one result.
    """
    from jinja2 import Environment, StrictUndefined

    source = (
        files("experiments.reports").joinpath("templates/uncertainty.html.jinja").read_text("utf-8")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source).render(name=name, note=NOTE, sections=_sections(results))


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
