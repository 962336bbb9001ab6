"""Tables and pictures of a study in one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from experiments.reports.pictures.drawing import inline_svg
from experiments.reports.pictures.trust import draw_calibration, draw_entropies, draw_risk
from experiments.reports.study import Result
from experiments.reports.study_table import CALIBRATION, DETECTION, TEXTS, chosen_values, table
from experiments.scores.trial import ClientPredictions

NOTE = (
    "Where it says tuned, prior precision and temperature were chosen on training samples that the "
    "run set aside; if it did not, on a third of each client's test samples, and the rest is "
    "scored. Means over seeds; pictures show the first."
)


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        id: name for links.
        title: heading.
        look: what to look for.
        cells: a table, headings first.
        lines: sentences below it.
        svg: a picture.
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


def render(name: str, findings: Sequence[Result]) -> str:
    """The page as HTML.

    Args:
        name: of the run.
        findings: at least one.
    """
    from jinja2 import Environment, StrictUndefined

    source = (
        files("experiments.reports").joinpath("templates/uncertainty.html.jinja").read_text("utf-8")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source).render(
        name=name, note=NOTE, sections=_sections(findings)
    )


def _sections(findings: Sequence[Result]) -> list[Section]:
    shown = _of_first_seed(findings)
    look = "Confidence is the probability of the predicted class: on the diagonal it is right."
    less = "Below the thin line at 5 % the samples kept can be used; lower curves are better."
    know = "Own samples should lie to the left, samples of other groups and noise to the right."
    return [
        Section(
            "calibration",
            "Calibration and selection",
            "Accuracy, cover@5% (samples kept at 5 % errors) and risk@80% in %, NLL in nats.",
            table(findings, CALIBRATION),
            chosen_values(findings),
        ),
        Section(
            "detection",
            "Detection",
            "AUROC, AUPR and FPR95 of finding wrong predictions by confidence, samples of other "
            "groups and noise by their strangeness to the client's clusters; AUROC by entropy, and "
            "by the mutual information between label and model, beside it.",
            table(findings, DETECTION),
        ),
        Section(
            "reliability",
            "Reliability",
            look,
            svg=inline_svg(lambda: draw_calibration(shown), "reliability", "Reliability"),
        ),
        Section(
            "risk",
            "Risk and coverage",
            less,
            svg=inline_svg(lambda: draw_risk(shown), "risk", "Risk against coverage"),
        ),
        Section(
            "entropies",
            "Entropies",
            know,
            svg=inline_svg(lambda: draw_entropies(shown), "entropies", "Entropies"),
        ),
    ]


def _of_first_seed(findings: Sequence[Result]) -> dict[str, dict[str, ClientPredictions]]:
    """Outcomes by method and kind of prediction."""
    shown: dict[str, dict[str, ClientPredictions]] = {}
    for one in findings:
        shown.setdefault(one.pair.method, {}).setdefault(one.label, one.outcome)
    return shown
