"""The report of a run as one self-contained HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from experiments.reports.gallery import all_pictures
from experiments.reports.results_table import agreement_table, results_table
from experiments.runs.files import RunFiles, write_aside
from experiments.runs.grids import choices
from experiments.runs.run_folder import RunFolder


def headline(run: RunFolder) -> str:
    """One sentence on methods, data, rounds and seeds, and the description of the scenario."""
    data = run.description.get("data", {})
    parts = [counted(len(run.methods), "method")]
    if "dataset" in data:
        parts[0] += f" on {data['dataset']}"
    if "clients" in data:
        parts.append(counted(data["clients"], "client"))
        if data.get("groups"):
            parts[-1] += f" in {counted(data['groups'], 'true group')}"
    parts.append(counted(max(run.series(m, "round").shape[1] for m in run.methods), "round"))
    parts.append(counted(len({seed for m in run.methods for seed in run.seeds(m)}), "seed"))
    description = str(run.scenario.get("description", "")).strip().rstrip(".")
    return ", ".join(parts) + "." + (f" {description}." if description else "")


def counted(number: int, noun: str) -> str:
    """Number with noun in singular or plural, such as `1 round` or `25 rounds`.

    Args:
        number: the number.
        noun: noun in singular.
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested settings into dotted names and text.

    Args:
        settings: nested settings.
        prefix: prefix of all names.

    Yields:
        Dotted name and value as text.
    """
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield prefix + name, ", ".join(map(str, value))
        else:
            yield prefix + name, str(value)


def failures(run: RunFolder) -> list[tuple[str, str, int]]:
    """Method, message and count of the failures of clients, most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for method in run.methods:
        for rounds in run.rounds[method].values():
            for entry in rounds:
                counts.update((method, text) for text in entry.get("failures") or ())
    return [(method, text, times) for (method, text), times in counts.most_common()]


def warnings(run: RunFolder) -> list[str]:
    """Warnings about unreliable fused posteriors and underpowered support tests."""
    floored = {m: run.series(m, "num_floored") for m in run.methods}
    raised = [f"{np.nanmean(v):,.0f} ({m})" for m, v in floored.items() if np.nansum(v) > 0]
    few = {m: run.facts(m, "devices_with_too_few_pairs") for m in run.methods}
    underpowered = [f"{np.nanmax(v):,.0f} ({m})" for m, v in few.items() if np.nansum(v) > 0]
    messages = []
    if underpowered:
        messages.append(
            "Devices with too few samples for the support test, maximum per round: "
            f"{', '.join(underpowered)}. Their p-values cannot reach the significance level (at "
            "0.1 that takes four samples on which two models differ), so their clusters receive "
            "no support and never merge: hold out more samples (validation), or raise alpha."
        )
    if raised:
        messages.append(
            f"Curvature entries raised to the floor, mean per round: {', '.join(raised)}. The data "
            "hardly constrain these parameters (constant-zero inputs, inactive units); their "
            "uncertainty is that of the floor."
        )
    return messages + fusion_warnings(run)


def fusion_warnings(run: RunFolder) -> list[str]:
    """Warnings about fused means beyond the clients', and about priors that outweigh all data."""
    outside = {m: run.series(m, "outside_hull") for m in run.methods}
    beyond = [f"{np.nanmax(v):.2%} ({m})" for m, v in outside.items() if np.nansum(v) > 0]
    outweighed = {m: run.series(m, "outweighed") for m in run.methods}
    stuck = [
        f"{np.nanmax(v):.0%} ({m}, most of them from round {(v > 0.5).any(axis=0).argmax() + 1} on)"
        for m, v in outweighed.items()
        if (v > 0.5).any()
    ]
    messages = []
    if beyond:
        messages.append(
            "Cluster parameters outside the range of the clients' parameters, share in the worst "
            f"round: {', '.join(beyond)}. More than a few per cent indicates unstable fusion: try "
            "precision-weighted fusion, a smaller learning rate or fewer local steps."
        )
    if stuck:
        messages.append(
            "Cluster parameters that data no longer move, share in the worst round: "
            f"{', '.join(stuck)}. Their precision has grown so large that the clients' curvature "
            "is below rounding: literal fusion with the memory accumulate counts the prior once "
            "per client and round. Exact fusion counts it once."
        )
    return messages


def write_report(run_dir: Path) -> Path:
    """Write `report.html` into the folder of a finished or running run.

    The output is deterministic; the file is written to a temporary name and renamed.

    Args:
        run_dir: folder of the run.

    Returns:
        Path of the report.

    Raises:
        ValueError: the folder holds no run, or one of its files cannot be read.
    """
    page = render(RunFolder.read(run_dir))
    path = RunFiles(run_dir).report
    write_aside(path, page)
    return path


def render(run: RunFolder) -> str:
    """Render the report of a run as HTML."""
    from jinja2 import Environment, StrictUndefined

    source = files("experiments.reports").joinpath("templates/report.html.jinja").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source).render(
        name=str(run.scenario.get("name", "run")),
        headline=headline(run),
        command=run.description.get("command", ""),
        seeds=", ".join(map(str, run.description.get("seeds", []))),
        unfinished=[m for m in run.rounds if m not in run.summary],
        table=results_table(run),
        grids=choices(run.summary),
        agreement=agreement_table(run),
        pictures=all_pictures(run),
        failures=failures(run),
        warnings=warnings(run),
        settings=list(flat(run.scenario)),
        surroundings=[
            pair
            for part in ("versions", "machine", "execution")
            for pair in flat(run.description.get(part, {}))
        ],
    )
