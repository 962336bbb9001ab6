"""The report of a run: one HTML file that needs nothing else."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from experiments.pictures.gallery import all_pictures
from experiments.report_table import results_table
from experiments.report_text import failures, flat, headline, warnings
from experiments.run_folder import RunFolder

REPORT = "report.html"


def write_report(run_dir: Path) -> Path:
    """Write `report.html` into the folder of a run, finished or not, and return its path.

    The same folder gives the same bytes. The file is written aside and renamed.

    Args:
        run_dir: folder of the run.

    Raises:
        ValueError: the folder holds no run, or one of its files cannot be read.
    """
    page = render(RunFolder.read(run_dir))
    path = run_dir / REPORT
    aside = run_dir / (REPORT + ".tmp")
    aside.write_text(page, encoding="utf-8")
    aside.replace(path)
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
        description=run.scenario.get("description", ""),
        command=run.description.get("command", ""),
        seeds=", ".join(map(str, run.description.get("seeds", []))),
        missing=[m for m in run.description["methods"] if m not in run.summary],
        table=results_table(run),
        pictures=all_pictures(run),
        failures=failures(run),
        warnings=warnings(run),
        settings=list(flat(run.scenario)),
        surroundings=[
            *flat(run.description.get("versions", {})),
            *flat(run.description.get("machine", {})),
        ],
    )
