"""Tables of uncertainty results: calibration, detection, and tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan, sqrt
from statistics import fmean, stdev

from experiments.reports.compare import UNKNOWN
from experiments.reports.uncertainty_results import Result

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
    "ood_auroc": ("other groups", "{:.3f}", 1.0),
    "ood_aupr": ("AUPR", "{:.3f}", 1.0),
    "ood_fpr95": ("FPR95", "{:.3f}", 1.0),
    "ood_auroc_entropy": ("by entropy", "{:.3f}", 1.0),
    "ood_auroc_knowledge": ("by MI", "{:.3f}", 1.0),
    "noise_auroc": ("noise", "{:.3f}", 1.0),
    "noise_aupr": ("AUPR", "{:.3f}", 1.0),
    "noise_fpr95": ("FPR95", "{:.3f}", 1.0),
    "noise_auroc_entropy": ("by entropy", "{:.3f}", 1.0),
    "noise_auroc_knowledge": ("by MI", "{:.3f}", 1.0),
}


def table(
    results: Sequence[Result], columns: Mapping[str, tuple[str, str, float]]
) -> list[list[str]]:
    """Cells of a table, header first: one row per method, prediction rule and part.

    Scores are means over seeds, except for single clients and clusters, which differ by seed.

    Args:
        results: at least one result.
        columns: `CALIBRATION` or `DETECTION`: heading, format and factor by score.

    Returns:
        Rows of equal length.
    """
    grouped: dict[tuple[str, str, str], list[Mapping[str, float]]] = {}
    whole = all(set(result.parts) == {"all"} for result in results)
    several = len({result.pair.seed for result in results}) > 1 and not whole
    for result in results:
        seed = f", seed {result.pair.seed}" if several else ""
        for part, scores in result.parts.items():
            grouped.setdefault((result.pair.method, result.label, part + seed), []).append(scores)
    head = ["method", "prediction", *([] if whole else ["of"])]
    lines = [[*head, *(title for title, *_ in columns.values())]]
    for (method, label, part), seeds in grouped.items():
        cells = [
            _cell([scores[name] for scores in seeds], form, factor)
            for name, (_, form, factor) in columns.items()
        ]
        lines.append([method, label, *([] if whole else [part]), *cells])
    return lines


ASSOCIATION: Mapping[str, str] = {
    "association_nll": "NLL",
    "association_brier": "Brier",
    "association_ece": "ECE",
    "association_auroc": "AUROC",
}
LEVEL = 0.95


def association_table(results: Sequence[Result]) -> list[list[str]]:
    """Cells of a table of association scores, header first: one row per method.

    Scores are means over seeds with the half width of their 95 % interval (Student's t over draws).

    Args:
        results: at least one result.
    """
    draws: dict[str, dict[int, Mapping[str, float]]] = {}
    for result in results:
        draws.setdefault(result.pair.method, {})[result.pair.seed] = result.association
    lines = [["method", "draws", *ASSOCIATION.values()]]
    for method, seeds in draws.items():
        columns = [[scores.get(name, nan) for scores in seeds.values()] for name in ASSOCIATION]
        lines.append([method, str(len(seeds)), *map(_with_interval, columns)])
    return lines


def _with_interval(values: Sequence[float]) -> str:
    """Mean of the known values, with the half width of its interval where there are several."""
    from scipy.stats import t

    known = [value for value in values if isfinite(value)]
    if len(known) < 2:
        return f"{known[0]:.3f}" if known else UNKNOWN
    width = float(t.ppf((1 + LEVEL) / 2, len(known) - 1)) * stdev(known) / sqrt(len(known))
    return f"{fmean(known):.3f} ±{width:.3f}"


def _cell(values: Sequence[float], form: str, factor: float) -> str:
    known = [value for value in values if isfinite(value)]
    return form.format(factor * sum(known) / len(known)) if known else UNKNOWN


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, text columns left-aligned and numbers right-aligned."""
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


def chosen_values(results: Sequence[Result]) -> list[str]:
    """Tuned prior precisions and temperatures, one line per method and rule with all seeds."""
    lines: dict[str, list[str]] = {}
    for result in results:
        if result.tuned:
            known = {"prior": result.rule.prior_precision, "T": result.rule.temperature}
            text = " ".join(f"{k} {v:.3g}" for k, v in known.items() if v is not None)
            lines.setdefault(f"{result.pair.method} {result.rule.predictive}", []).append(text)
    return [f"{name}: {' · '.join(dict.fromkeys(values))}" for name, values in lines.items()]
