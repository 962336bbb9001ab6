"""`bcfl run` and `bcfl resume`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from bcfl.runtime import counted
from experiments.commands import completion
from experiments.commands.outcome import show_results
from experiments.commands.overrides import overridden
from experiments.commands.shared import (
    INTERRUPTED,
    OF_METHODS,
    OF_WORK,
    Arithmetic,
    Cluster,
    CpusPerNode,
    Debug,
    Executor,
    GpusPerNode,
    Memory,
    Methods,
    Nodes,
    NumWorkers,
    ScenarioName,
    console,
    explained,
    sizes,
)

if TYPE_CHECKING:
    from experiments.config.scenario import Scenario
    from experiments.runs.plan import Plan
    from experiments.runs.runner import Experiment


@explained
def run(
    scenario: ScenarioName,
    *,
    methods: Methods = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="METHOD.OPTION=VALUE",
            help="An option of one method, such as ifca-cam.update=joint; repeatable.",
            autocompletion=completion.settings,
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD.OPTION=V1,V2,...",
            help="Try all values, and the product of several grids; select by held-out samples.",
            autocompletion=completion.settings,
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds in place of the scenario's.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Seeds in place of the scenario's, such as 0,1,2."),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Number of clusters, or auto.",
            autocompletion=completion.clusters,
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    cluster_size: Annotated[
        str | None,
        typer.Option(
            metavar="MIN,MAX",
            help="Fewest and most clients per cluster, such as 2,15 or 2,all.",
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Margin of FAACL's support tests, nats per sample.", rich_help_panel=OF_METHODS
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Significance level of FAACL's support tests.", rich_help_panel=OF_METHODS
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Bound of FedDrift on the rise of losses, nats per sample.",
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    decay: Annotated[
        float | None,
        typer.Option(
            help="Share of the past that bcfl-forget keeps in each round.",
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    posterior: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Local posteriors of bcfl methods, such as laplace-full; small networks.",
            autocompletion=completion.posteriors,
            rich_help_panel=OF_METHODS,
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            help="Number of pairs of method and seed run in parallel.", rich_help_panel=OF_WORK
        ),
    ] = 1,
    cluster: Cluster = None,
    threads: Annotated[
        int,
        typer.Option(
            help="Threads per process; more than one pays for large networks only.",
            rich_help_panel=OF_WORK,
        ),
    ] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that is searched first for data.")
    ] = None,
    device: Annotated[
        str,
        typer.Option(metavar="NAME", help="auto, cpu, cuda or cuda:N.", rich_help_panel=OF_WORK),
    ] = "auto",
    executor: Executor = "auto",
    memory: Memory = None,
    workers: NumWorkers = None,
    arithmetic: Arithmetic = "full",
    nodes: Nodes = None,
    cpus_per_node: CpusPerNode = 1.0,
    gpus_per_node: GpusPerNode = 0.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the run, new or empty; a folder in runs/ if left out."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Run a scenario, by its name or as a .toml file; end with a table and a report."""
    del debug
    options = {
        "methods": methods,
        "set": set_,
        "grid": grid,
        "rounds": rounds,
        "seeds": seeds,
        "clusters": clusters,
        "cluster-size": cluster_size,
        "epsilon": epsilon,
        "alpha": alpha,
        "delta": delta,
        "decay": decay,
        "posterior": posterior,
        "jobs": jobs if jobs != 1 else None,
        "cluster": cluster,
        "threads": threads if threads != 1 else None,
        "data-dir": data_dir,
        "device": device if device != "auto" else None,
        "executor": executor if executor != "auto" else None,
        "memory": memory,
        "workers": workers,
        "arithmetic": arithmetic if arithmetic != "full" else None,
        "nodes": nodes,
        "cpus-per-node": cpus_per_node if cpus_per_node != 1 else None,
        "gpus-per-node": gpus_per_node or None,
    }
    from experiments.config.scenario import load
    from experiments.config.sections import in_file
    from experiments.datasets import located

    chosen = overridden(load(scenario), options)
    located(chosen.data.dataset, chosen.data.data_dir, **chosen.data.scaling)
    from experiments.runs.plan import Plan, check_free, new_folder

    folder = out or new_folder(chosen.name, datetime.now())
    check_free(folder)
    from experiments.config.executor_options import executor_of

    working = executor_of(executor, memory, workers, arithmetic, jobs)
    working = replace(
        working, nodes=nodes, cpus_per_node=cpus_per_node, gpus_per_node=gpus_per_node
    )
    plan = Plan(
        scenario=chosen,
        device=device,
        threads=threads,
        jobs=jobs,
        command=_command(scenario, options),
        executor=working,
        cluster=cluster,
    )
    from bcfl.runtime import device_named

    plan = replace(plan, device=str(device_named(device)))
    from experiments.launch import start
    from experiments.runs.runner import Experiment

    setup = Experiment(
        scenario=plan.scenario, device=plan.device, executor=plan.executor, threads=threads
    )
    with in_file(scenario):
        setup.check()
    screen = console()
    screen.print(_headline(plan, setup), soft_wrap=True)
    for note in _notes(plan.scenario):
        screen.print(note, soft_wrap=True)
    told = not setup.partition(plan.scenario.seeds[0]).shares_group
    with _stoppable(screen, plan.scenario, folder, tells_agreement=told) as callbacks:
        start(plan, folder, setup, callbacks)
    show_results(screen, plan, folder)


@explained
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="DIR")],
    *,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of pairs of method and seed run in parallel; as before if left out."
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Resume the interrupted run of a folder; a finished one is not changed."""
    del debug
    from experiments.runs.files import RunFiles
    from experiments.runs.plan import changed_versions, read_plan

    plan, screen = read_plan(folder), console()
    plan = plan if jobs is None else replace(plan, jobs=jobs, cluster=None)
    from experiments import launch as work
    from experiments.runs.run_folder import shares_group
    from experiments.runs.summary import read_summary

    if work.is_finished(plan, RunFiles(folder)):
        read_summary(folder)
        screen.print(f"{folder} is finished; nothing to do", soft_wrap=True)
        show_results(screen, plan, folder)
        return
    for name, (was, now) in changed_versions(folder).items():
        screen.print(f"note: the run began with {name} {was}, this is {now}", soft_wrap=True)
    told = not shares_group(folder, plan.scenario.pairs)
    with _stoppable(screen, plan.scenario, folder, tells_agreement=told) as callbacks:
        work.resume(plan, folder, callbacks)
    show_results(screen, plan, folder)


def _command(scenario: str, given: dict[str, Any]) -> str:
    options = [
        word
        for name, value in given.items()
        for text in (value if isinstance(value, list) else [value])
        if text is not None
        for word in (f"--{name}", str(text))
    ]
    return shlex.join(["bcfl", "run", scenario, *options])


def _headline(plan: Plan, setup: Experiment) -> Text:
    scenario = plan.scenario
    partition = setup.partition(scenario.seeds[0])
    kind = scenario.partition
    details = [
        ", ".join(map(str, value)) if isinstance(value, list) else f"{key} {value}"
        for key, value in kind.options.items()
        if key not in ("clients", "groups")
    ]
    where = f"{plan.device}, {counted(plan.threads, 'thread')}, {setup.executor_name} executor"
    if setup.executor_name == "processes":
        where += f" of {counted(plan.executor.workers or 1, 'worker')}"
    parts = [
        setup.dataset.name,
        *sizes(partition),
        " ".join([kind.name, f"({'; '.join(details)})"] if details else [kind.name]),
        counted(scenario.federation.rounds, "round"),
        f"{where} x {plan.jobs} jobs" if plan.jobs > 1 else where,
        *([f"cluster {plan.cluster}"] if plan.cluster else []),
    ]
    return Text.assemble((f"bcfl run {scenario.name}", "bold"), f"   {' · '.join(parts)}")


def _notes(scenario: Scenario) -> list[str]:
    """Notes on the samples held out to choose among the variants of a method."""
    from experiments.config.variants import Variant

    notes = {}
    for label in scenario.methods:
        variant = Variant.of(label)
        share = scenario.options(label).get("calibration", 0)
        if variant.options and share:
            notes[variant.method] = share
    return [
        f"{method}: {share:.0%} of each client's training samples are set aside, to choose among "
        "its variants by; methods that set none aside train on all"
        for method, share in notes.items()
    ]


@contextmanager
def _stoppable(
    screen: Console, scenario: Scenario, folder: Path, *, tells_agreement: bool
) -> Iterator[Any]:
    from experiments.runs.progress import showing_progress
    from experiments.runs.runner import Interrupted

    try:
        with showing_progress(screen, scenario, tells_agreement=tells_agreement) as callbacks:
            yield callbacks
    except (Interrupted, KeyboardInterrupt):
        again = f"bcfl resume {shlex.quote(str(folder))}"
        screen.print(f"stopped; to resume: {again}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
