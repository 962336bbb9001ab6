"""Tables of a study: calibration, detection, and what was tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from experiments.reports.compare import UNKNOWN
from experiments.reports.study import Result

TEXTS = ("method", "prediction", "of")
CALIBRATION: Mapping[str, tuple[str, str, float]] = {
    "accuracy": ("accuracy", "{:.1f}", 100.0),
    "nll": ("NLL", "{:.3f}", 1.0),
    "brier": ("Brier", "{:.3f}", 1.0),
    "ece": ("ECE", "{:.3f}", 1.0),
    "mce": ("MCE", "{:.3f}", 1.0),
    "adaptive_ece": ("aECE", "{:.3f}", 1.0),
    "aurc": ("AURC", "{:.4f}", 1.0),
    "coverage_at_5_risk": ("cover@5%", "{:.1f}", 100.0),
    "risk_at_80_coverage": ("risk@80%", "{:.2f}", 100.0),
}
DETECTION: Mapping[str, tuple[str, str, float]] = {
    "wrong_auroc": ("wrong", "{:.3f}", 1.0),
    "wrong_aupr": ("AUPR", "{:.3f}", 1.0),
    "wrong_fpr95": ("FPR95", "{:.3f}", 1.0),
    "strange_auroc": ("other groups", "{:.3f}", 1.0),
    "strange_aupr": ("AUPR", "{:.3f}", 1.0),
    "strange_fpr95": ("FPR95", "{:.3f}", 1.0),
    "strange_auroc_entropy": ("by entropy", "{:.3f}", 1.0),
    "strange_auroc_knowledge": ("by MI", "{:.3f}", 1.0),
    "noise_auroc": ("noise", "{:.3f}", 1.0),
    "noise_aupr": ("AUPR", "{:.3f}", 1.0),
    "noise_fpr95": ("FPR95", "{:.3f}", 1.0),
    "noise_auroc_entropy": ("by entropy", "{:.3f}", 1.0),
    "noise_auroc_knowledge": ("by MI", "{:.3f}", 1.0),
}


def table(
    findings: Sequence[Result], columns: Mapping[str, tuple[str, str, float]]
) -> list[list[str]]:
    """Cells of a table, headings first: a row per method, rule and part.

    Numbers are means over seeds, but for single clients and clusters, which each seed draws anew.

    Args:
        findings: at least one.
        columns: `CALIBRATION` or `DETECTION`: heading, format and factor by score.
    """
    grouped: dict[tuple[str, str, str], list[Mapping[str, float]]] = {}
    whole = all(set(one.parts) == {"all"} for one in findings)
    several = len({one.pair.seed for one in findings}) > 1 and not whole
    for one in findings:
        seed = f", seed {one.pair.seed}" if several else ""
        for part, found in one.parts.items():
            grouped.setdefault((one.pair.method, one.label, part + seed), []).append(found)
    head = ["method", "prediction", *([] if whole else ["of"])]
    lines = [[*head, *(title for title, *_ in columns.values())]]
    for (method, label, part), seeds in grouped.items():
        cells = [
            _cell([found[name] for found in seeds], form, factor)
            for name, (_, form, factor) in columns.items()
        ]
        lines.append([method, label, *([] if whole else [part]), *cells])
    return lines


def _cell(values: Sequence[float], form: str, factor: float) -> str:
    known = [value for value in values if isfinite(value)]
    return form.format(factor * sum(known) / len(known)) if known else UNKNOWN


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with text to the left and numbers to the right."""
    texts = next(
        i for i, title in enumerate(cells[0]) if title not in ("method", "prediction", "of")
    )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            f"{cell:{'<' if i < texts else '>'}{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def chosen_values(findings: Sequence[Result]) -> list[str]:
    """What was tuned, a line for each method and rule, all seeds in it."""
    lines: dict[str, list[str]] = {}
    for one in findings:
        if one.tuned:
            known = {"prior": one.rule.prior_precision, "T": one.rule.temperature}
            text = " ".join(f"{k} {v:.3g}" for k, v in known.items() if v is not None)
            lines.setdefault(f"{one.pair.method} {one.rule.predictive}", []).append(text)
    return [f"{name}: {' · '.join(dict.fromkeys(values))}" for name, values in lines.items()]
