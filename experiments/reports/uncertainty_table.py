"""Tables of uncertainty results: calibration, detection, and tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan, sqrt
from statistics import fmean, stdev
from typing import TypeAlias

from experiments.reports.columns import UNKNOWN
from experiments.reports.uncertainty_results import Result, worded

TEXTS = ("method", "prediction", "of")
Columns: TypeAlias = Mapping[str, tuple[str, str, float]]
"""Heading, format and factor by score."""
CALIBRATION: Columns = {
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
LABELS: Columns = {
    "accuracy": ("accuracy", "{:.1f}", 100.0),
    "micro_f1": ("micro F1", "{:.1f}", 100.0),
    "macro_f1": ("macro F1", "{:.1f}", 100.0),
    "nll": ("NLL", "{:.3f}", 1.0),
    "brier": ("Brier", "{:.3f}", 1.0),
    "ece": ("ECE", "{:.3f}", 1.0),
    "aurc": ("AURC", "{:.4f}", 1.0),
    "coverage_at_5_risk": ("cover@5%", "{:.1f}", 100.0),
    "risk_at_80_coverage": ("risk@80%", "{:.2f}", 100.0),
}
NUMBERS: Columns = {
    "rmse": ("RMSE", "{:.3f}", 1.0),
    "nll": ("NLL", "{:.3f}", 1.0),
    "crps": ("CRPS", "{:.3f}", 1.0),
    **{f"coverage_{level}": (f"in {level}%", "{:.1f}", 100.0) for level in (50, 80, 90, 95)},
    "coverage_error": ("coverage error", "{:.1f}", 100.0),
    "sharpness": ("sharpness", "{:.3f}", 1.0),
    "rmse_at_80_coverage": ("RMSE@80%", "{:.3f}", 1.0),
}
DETECTION: Columns = {
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


def table(results: Sequence[Result], columns: Columns) -> list[list[str]]:
    """Cells of a table, header first: one row per method, prediction rule and part.

    Scores are means over seeds, except for single clients and clusters, which differ by seed.
    Columns of which nothing is known are left out.

    Args:
        results: at least one result.
        columns: `CALIBRATION`, `LABELS`, `NUMBERS` or `DETECTION`.

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
    every = [scores for seeds in grouped.values() for scores in seeds]
    columns = {
        name: column
        for name, column in columns.items()
        if any(isfinite(scores.get(name, nan)) for scores in every)
    }
    head = ["method", "prediction", *([] if whole else ["of"])]
    titles = [worded(title, results) for title, *_ in columns.values()]
    lines = [[*head, *titles]]
    for (method, label, part), seeds in grouped.items():
        cells = [
            _cell([scores.get(name, nan) for scores in seeds], form, factor)
            for name, (_, form, factor) in columns.items()
        ]
        lines.append([method, label, *([] if whole else [part]), *cells])
    return lines


@dataclass(frozen=True)
class ScoreTable:
    """A table of scores.

    Attributes:
        id: anchor.
        title: heading.
        look: how to read it.
        columns: that it has.
        cells: header first.
    """

    id: str
    title: str
    look: str
    columns: Columns
    cells: Sequence[Sequence[str]] = ()


KINDS: Mapping[str, ScoreTable] = {
    "categorical": ScoreTable(
        "calibration",
        "Calibration and selection",
        "Accuracy, cover@5% (samples kept at 5 % errors) and risk@80% in %, NLL in nats.",
        CALIBRATION,
    ),
    "bernoulli": ScoreTable(
        "labels",
        "Calibration and selection of labels",
        "Accuracy (samples with all labels right) and F1 in %, NLL in nats per sample, Brier score "
        "and ECE of the probability that a label is present, means over labels; cover@5% (samples "
        "kept at 5 % with a wrong label) and risk@80% in %.",
        LABELS,
    ),
    "gaussian": ScoreTable(
        "numbers",
        "Calibration and selection of numbers",
        "NLL in nats per value; CRPS and sharpness (mean standard deviation of the prediction) in "
        "the unit of the values; values inside the central predictive intervals, and the mean "
        "distance of these shares from their levels, in %. RMSE@80% is that of the 80 % of samples "
        "of least entropy. Tuned: prior precision and noise variance.",
        NUMBERS,
    ),
}
"""Tables of calibration, by likelihood of what is predicted."""
OUTSIDE = ScoreTable(
    "detection",
    "Detection",
    "AUROC, AUPR and FPR95 of detecting wrong classes or labels by confidence, and samples of "
    "other groups and noise by their out-of-distribution (OOD) score; for the latter two also "
    "AUROC by entropy and by mutual information (MI) of label and model.",
    DETECTION,
)
ALONE = (
    "AUROC, AUPR and FPR95 of detecting wrong classes or labels by confidence, and noise by its "
    "out-of-distribution (OOD) score; for the latter also AUROC by entropy and by mutual "
    "information (MI) of label and model. All clients share one group (one cluster, where groups "
    "are unknown), so that there are no samples of other groups."
)
"""What is detected where there are no samples of other groups."""


def has_others(results: Sequence[Result]) -> bool:
    """Whether there are samples of other groups, which a model should be uncertain of."""
    found = (scores.get("ood_auroc", nan) for one in results for scores in one.parts.values())
    return any(map(isfinite, found))


def score_tables(results: Sequence[Result]) -> list[ScoreTable]:
    """The tables of calibration of what was predicted, then that of detection.

    Args:
        results: at least one result.
    """
    by_kind = {kind: [r for r in results if r.predictions.kind == kind] for kind in KINDS}
    tables = [
        replace(KINDS[kind], cells=table(r, KINDS[kind].columns))
        for kind, r in by_kind.items()
        if r
    ]
    look = worded(OUTSIDE.look if has_others(results) else ALONE, results)
    return [*tables, replace(OUTSIDE, look=look, cells=table(results, DETECTION))]


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
    Those of which nothing is known are left out, such as AUROC where all clients share a group.

    Args:
        results: at least one result.

    Returns:
        Rows of equal length; none where no score is known.
    """
    draws: dict[str, dict[int, Mapping[str, float]]] = {}
    for result in results:
        draws.setdefault(result.pair.method, {})[result.pair.seed] = result.association
    every = [scores for seeds in draws.values() for scores in seeds.values()]
    names = [n for n in ASSOCIATION if any(isfinite(scores.get(n, nan)) for scores in every)]
    if not names:
        return []
    lines = [["method", "draws", *(ASSOCIATION[name] for name in names)]]
    for method, seeds in draws.items():
        columns = [[scores.get(name, nan) for scores in seeds.values()] for name in names]
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


def num_text_columns(cells: Sequence[Sequence[str]]) -> int:
    """Columns of a table that hold text; they come first.

    Args:
        cells: header first; empty for no table.
    """
    return sum(title in TEXTS for title in cells[0]) if cells else 0


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, text columns left-aligned and numbers right-aligned."""
    texts = num_text_columns(cells)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            f"{cell:{'<' if i < texts else '>'}{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


GROUPS: Mapping[str, str] = {
    "wrong": "wrong predictions",
    "other groups": "samples of other groups",
    "other concepts": "samples of other concepts",
    "noise": "noise",
}
"""What is detected, by the heading of the first of its columns in `DETECTION`, its AUROC."""


def header_groups(head: Sequence[str]) -> tuple[list[str], list[tuple[str, int]]]:
    """Headings below those of what is detected, and the latter with their numbers of columns.

    Args:
        head: headings of a table; without those of `GROUPS` there are no groups.

    Returns:
        The headings, and groups, which are those of the last columns.
    """
    starts = [place for place, title in enumerate(head) if title in GROUPS]
    ends = [*starts[1:], len(head)]
    groups = [(GROUPS[head[a]], b - a) for a, b in zip(starts, ends, strict=False)]
    return ["AUROC" if title in GROUPS else title for title in head], groups


def tuned_table(results: Sequence[Result]) -> list[list[str]]:
    """Cells of a table of tuned values, header first: one row per method and rule with all seeds.

    Args:
        results: at least one result.

    Returns:
        Rows of equal length; none where nothing was tuned. Values are in the order of
        `tuned_seeds`; one that all seeds have in common is there once.
    """
    seeds = tuned_seeds(results)
    rows: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
    for result in results:
        if result.tuned:
            row = rows.setdefault((result.pair.method, result.rule.predictive), {})
            for name, value in _tuned(result).items():
                row.setdefault(name, {})[result.pair.seed] = plain(value)
    columns = [
        name
        for name in ("prior precision", "temperature", "noise variance")
        if any(name in row for row in rows.values())
    ]
    head = [["method", "prediction", *columns]] if rows else []
    return head + [
        [*names, *(_joined(row.get(column, {}), seeds) for column in columns)]
        for names, row in rows.items()
    ]


def tuned_seeds(results: Sequence[Result]) -> list[int]:
    """Seeds of which a value was tuned, ascending."""
    return sorted({result.pair.seed for result in results if result.tuned})


def _tuned(result: Result) -> dict[str, float]:
    other = "noise variance" if result.predictions.kind == "gaussian" else "temperature"
    known = {"prior precision": result.rule.prior_precision, other: result.rule.temperature}
    return {name: value for name, value in known.items() if value is not None}


def _joined(values: Mapping[int, str], seeds: Sequence[int]) -> str:
    """Values by seed in the order of the seeds, one that all have in common once."""
    shown = [values.get(seed, UNKNOWN) for seed in seeds]
    return shown[0] if len(set(shown)) == 1 else " · ".join(shown)


def plain(value: float) -> str:
    """A value in three digits, without powers of ten where it is large.

    Args:
        value: above 0.
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def chosen_values(results: Sequence[Result]) -> list[str]:
    """Tuned values, one line per method and rule with all seeds in ascending order.

    Prior precision and temperature T, or of numbers the noise variance; values that all seeds have
    in common are there once.
    """
    short = {"prior precision": "prior", "noise variance": "noise", "temperature": "T"}
    lines: dict[str, dict[int, str]] = {}
    for result in results:
        if result.tuned:
            text = " ".join(f"{short[name]} {plain(v)}" for name, v in _tuned(result).items())
            name = f"{result.pair.method} {result.rule.predictive}"
            lines.setdefault(name, {})[result.pair.seed] = text
    seeds = tuned_seeds(results)
    return [f"{name}: {_joined(values, seeds)}" for name, values in lines.items()]
