"""Starting and resuming the run of a folder."""

from __future__ import annotations

from pathlib import Path

from bcfl.analysis import rows
from bcfl.runtime import limited_threads, locked
from experiments.runs.cluster import run_on_cluster
from experiments.runs.files import RunFiles
from experiments.runs.flower import with_engine
from experiments.runs.index import Contents
from experiments.runs.plan import Plan, check_free, write_configs, write_plan
from experiments.runs.runner import Experiment, Interrupted, RunCallbacks, run_pair
from experiments.runs.summary import write_summary
from experiments.runs.workers import WorkerConfig, run_parallel


def start(plan: Plan, folder: Path, setup: Experiment, callbacks: RunCallbacks) -> None:
    """Run an experiment in a new folder.

    Args:
        plan: the experiment.
        folder: new, or empty.
        setup: the experiment, built and checked.
        callbacks: for progress and interruption.

    Raises:
        FolderError: the folder holds something.
        Interrupted: `callbacks` requested a stop.
    """
    check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = RunFiles(folder)
    with locked(folder):
        check_free(folder)
        write_plan(plan, setup, files)
        _carry_out(plan, files, setup, callbacks)


def resume(plan: Plan, folder: Path, callbacks: RunCallbacks) -> None:
    """Resume a run from its newest checkpoints; a finished run is not changed.

    Args:
        plan: what the folder holds, see `read_plan`; with any number of jobs.
        folder: folder of the run.
        callbacks: for progress and interruption.

    Raises:
        CheckpointError: a checkpoint is damaged.
        rows.MetricsError: rounds are damaged; it names all that must be deleted to go on.
        Interrupted: `callbacks` requested a stop.
    """
    files = RunFiles(folder)
    if is_finished(plan, files):
        return
    if damaged := Contents.of(folder).damaged.values():
        raise rows.MetricsError("; ".join(map(str, damaged)))
    with locked(folder):
        write_configs(plan, files)
        setup = Experiment(
            scenario=plan.scenario, device=plan.device, executor=plan.executor, threads=plan.threads
        )
        _carry_out(plan, files, setup, callbacks)


def is_finished(plan: Plan, files: RunFiles) -> bool:
    """Whether all rounds are done and can be read, and summary and report are written.

    Args:
        plan: of the run.
        files: of its folder.
    """
    last = (files.summary, files.rounds, files.report)
    done = all(files.of(pair).is_finished for pair in plan.scenario.pairs)
    return done and all(path.is_file() for path in last) and not Contents.of(files.folder).left_out


def _carry_out(plan: Plan, files: RunFiles, setup: Experiment, callbacks: RunCallbacks) -> None:
    if plan.jobs == 1 and plan.cluster is None:
        with limited_threads(plan.threads), with_engine(setup) as ready:
            for pair in plan.scenario.pairs:
                if callbacks.should_stop():
                    raise Interrupted
                run_pair(ready, pair, files.of(pair), callbacks)
    else:
        config = WorkerConfig(
            scenario=plan.scenario,
            device=plan.device,
            threads=plan.threads,
            files=files,
            executor=plan.executor,
        )
        if plan.cluster is None:
            run_parallel(config, plan.scenario.pairs, plan.jobs, callbacks)
        else:
            run_on_cluster(config, plan.scenario.pairs, plan.cluster, callbacks)
    write_summary(plan, files)
    from experiments.reports.report import write_report

    write_report(files.folder, setup)
