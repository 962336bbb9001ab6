"""The report of a run: one HTML file that needs nothing else."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from experiments.files import RunFiles, write_aside
from experiments.pictures.gallery import all_pictures
from experiments.report_table import agreement_table, results_table
from experiments.report_text import failures, flat, headline, warnings
from experiments.run_folder import RunFolder


def write_report(run_dir: Path) -> Path:
    """Write `report.html` into the folder of a run, finished or not, and return its path.

    The same folder gives the same bytes. The file is written aside and renamed.

    Args:
        run_dir: folder of the run.

    Raises:
        ValueError: the folder holds no run, or one of its files cannot be read.
    """
    page = render(RunFolder.read(run_dir))
    path = RunFiles(run_dir).report
    write_aside(path, page)
    return path


def render(run: RunFolder) -> str:
    """The report of a run as HTML."""
    from jinja2 import Environment, StrictUndefined

    source = files("experiments").joinpath("templates/report.html.jinja").read_text("utf-8")
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
