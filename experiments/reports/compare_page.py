"""Several runs on one page: results, learning curves and costs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.reports.columns import averaged, unequal
from experiments.reports.compare import lengths, lettered, unpaired
from experiments.reports.galleries.score_gallery import score_pictures
from experiments.reports.page import render_page
from experiments.reports.pictures.method_styles import has_style_of_run
from experiments.reports.pictures.time_steps import Stream
from experiments.reports.results_table import agreement_table, results_table
from experiments.reports.round_history import FirstStates
from experiments.reports.run_warnings import folder_warnings, notes, round_warnings
from experiments.reports.terms import TRUE_GROUP
from experiments.runs.run_folder import RunFolder


def render(folders: Sequence[Path]) -> str:
    """Render the page as HTML.

    Args:
        folders: of finished runs.

    Raises:
        ValueError: a folder holds no run, or one of its files cannot be read.
    """
    runs = {
        letter: RunFolder.read(path).without_vain_scores()
        for letter, path in lettered(folders).items()
    }
    joined, first = joined_runs(runs), {r: FirstStates.of(run) for r, run in runs.items()}
    scenarios = sorted({str(run.scenario.get("name", "run")) for run in runs.values()})
    kinds = {Stream.of(run).kind for run in runs.values()}
    group = kinds.pop() if len(kinds) == 1 else TRUE_GROUP
    apart, long = unpaired(folders), lengths(folders)
    return render_page(
        "compare.html.jinja",
        "Comparison – bcfl",
        scenarios=scenarios,
        group=group,
        runs=[
            (letter, folder.resolve().name, runs[letter].description.get("command", ""))
            for letter, folder in lettered(folders).items()
        ],
        warnings=[
            *([different(apart)] if apart else []),
            *filter(None, [unequal(long)]),
            *(
                f"{letter}: {text}" if len(runs) > 1 else text
                for letter, run in runs.items()
                for text in folder_warnings(run, first[letter].unreadable)
            ),
            *round_warnings(joined),
        ],
        notes=notes(
            joined,
            {
                f"{letter}/{method}" if len(runs) > 1 else method: snapshots
                for letter, states in first.items()
                for method, snapshots in states.histories.items()
            },
        ),
        table=results_table(joined, paired=not apart),
        averaged=averaged(long.values()),
        agreement=agreement_table(joined, paired=not apart),
        pictures=score_pictures(joined, group),
        styled=has_style_of_run(joined.methods),
    )


def different(parts: Sequence[str]) -> str:
    """A warning that methods of several runs cannot be paired by seeds.

    Args:
        parts: of data, partition and seeds, those in which the runs differ.
    """
    named = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return (
        f"The runs differ in their {named}, so that their methods are not compared seed by seed: "
        "differences between them may be differences of the data."
    )


def joined_runs(runs: dict[str, RunFolder]) -> RunFolder:
    """Runs as one whose methods bear the letter of their run before their name.

    Args:
        runs: by letter; a single one keeps the names of its methods.
    """
    if len(runs) == 1:
        return next(iter(runs.values()))
    return RunFolder(
        path=Path(),
        description={},
        summary={f"{r}/{m}": found for r, run in runs.items() for m, found in run.summary.items()},
        rounds={f"{r}/{m}": found for r, run in runs.items() for m, found in run.rounds.items()},
        one_group=all(run.one_group for run in runs.values()),
    )
