"""Running the units of a table, one after the other."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import tomli_w

from bcfl.analysis import rows
from bcfl.runtime import BusyError, limited_threads
from experiments import datasets
from experiments.config.scenario import Scenario
from experiments.config.variants import Pair
from experiments.datasets import Dataset
from experiments.published.data import Described, are_same, described
from experiments.published.results import CURVES, DIGITS, FACTS, Results
from experiments.published.units import Unit
from experiments.runs.files import PairFiles, write_aside
from experiments.runs.grids import read_held_out
from experiments.runs.plan import versions
from experiments.runs.runner import Experiment, Interrupted, RunCallbacks, run_pair
from experiments.runs.summary import of_seed, step_accuracy

Samples = Callable[[Unit], Dataset]
"""The data of a unit."""
_DATA = "data.json"
"""Of the working folder of a unit: the data that it began with."""
LONGEST = 500
"""Characters of an error that are kept."""
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][\w.@+-]+){2,}")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where units run.

    Attributes:
        device: `cpu`, `cuda` or `cuda:N`.
        threads: of torch and BLAS.
        data_dir: folder that is searched first for data.
    """

    device: str = "cpu"
    threads: int = 1
    data_dir: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reporter:
    """What is told while units run.

    Attributes:
        callbacks: context of the progress of a unit's rounds, from its scenario.
        on_unit: called with each unit that begins, and its number from 1.
        on_other_data: called before with a unit whose result was made from other data than those
            that are here, and with what it says of its data.
        on_failure: called with a unit that failed, and why.
    """

    callbacks: Callable[[Scenario], AbstractContextManager[RunCallbacks]]
    on_unit: Callable[[Unit, int], None] = lambda unit, number: None
    on_other_data: Callable[[Unit, Described], None] = lambda unit, data: None
    on_failure: Callable[[Unit, str], None] = lambda unit, why: None


def carry_out(
    units: Sequence[Unit], results: Results, machine: Machine, reporter: Reporter
) -> Results:
    """Run the units without a result; one that fails is recorded, and the others go on.

    A result that was made from other data than those that are here does not count.

    Several processes may work on one folder: a unit in work elsewhere is passed over.

    Args:
        units: of one or more tables.
        results: what is there.
        machine: where to run.
        reporter: told of progress.

    Returns:
        The results, which know the data that were loaded.

    Raises:
        Interrupted: a stop was requested; the unit in work goes on from its checkpoint later.
    """
    samples = _samples_of(machine)
    for number, unit in enumerate(units, start=1):
        results = _comparing(unit, results, samples)
        if results.is_done(unit):
            continue
        if (data := results.of_other_data(unit)) is not None:
            reporter.on_other_data(unit, data)
        reporter.on_unit(unit, number)
        try:
            content = _measured(unit, results, machine, reporter, samples)
            results.write(unit, content)
            results = results.knowing(unit.dataset, content["data"])
        except Interrupted:
            raise
        except BusyError:
            reporter.on_failure(unit, "another process is at it")
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {_PATH.sub('PATH', str(error))[:LONGEST]}"
            results.write(unit, {**_described(unit), "error": why})
            reporter.on_failure(unit, why)
    return results


def _samples_of(machine: Machine) -> Samples:
    """Loads the data of units, once for units of the same data that follow one another."""
    load = lru_cache(maxsize=1)(datasets.load)

    def samples(unit: Unit) -> Dataset:
        source = unit.scenario(machine.data_dir).data
        return load(source.dataset, source.data_dir, **source.scaling)

    return samples


def _comparing(unit: Unit, results: Results, samples: Samples) -> Results:
    """The results, which know the data of a unit if it has a result to compare them with."""
    if unit.dataset in results.here or not results.is_done(unit):
        return results
    try:
        found = described(samples(unit))
    except Exception:  # data that cannot be loaded are told of by a unit that needs them
        found = {}
    return results.knowing(unit.dataset, found)


def _measured(
    unit: Unit, results: Results, machine: Machine, reporter: Reporter, samples: Samples
) -> dict[str, Any]:
    """Run a unit, from its newest checkpoint if there is one."""
    scenario, files = unit.scenario(machine.data_dir), results.work(unit)
    loaded = samples(unit)
    data = described(loaded)
    _keep_if_same(files, tomli_w.dumps(unit.scenario().table()), data)
    setup = Experiment(
        scenario=scenario,
        device=machine.device,
        threads=machine.threads,
        samples=loaded,
    )
    setup.check()
    began = process_time()
    with reporter.callbacks(scenario) as callbacks, limited_threads(machine.threads):
        run_pair(setup, Pair(unit.label, unit.seed), files, callbacks)
    done = rows.read(files.metrics)
    seconds = sum(row["seconds"]["total"] for row in done)
    return {
        **_described(unit),
        "metrics": {**_metrics(done), **read_held_out(files)},
        "curves": _curves(done),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(process_time() - began, 1),
        "machine": {
            "device": machine.device,
            "threads": machine.threads,
            "executor": setup.executor_name,
        },
        "data": data,
        "versions": versions(),
    }


def _keep_if_same(files: PairFiles, config: str, data: Described) -> None:
    """Empty the working folder of a unit if what it began was another experiment or of others."""
    beside = files.folder / _DATA
    before = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else {}
    is_other = files.config.is_file() and files.config.read_text(encoding="utf-8") != config
    if is_other or not are_same(before, data):
        shutil.rmtree(files.folder)
    write_aside(files.config, config)
    write_aside(beside, json.dumps(data))


def _described(unit: Unit) -> dict[str, Any]:
    return {
        "table": unit.table.results_name,
        "scale": unit.scale,
        "column": unit.column.name,
        "row": unit.row.name,
        "seed": unit.seed,
        "command": unit.command,
        "setting": unit.setting,
    }


def _curves(done: Sequence[rows.Row]) -> dict[str, list[float | None]]:
    """Values over rounds, those of facts only where the method logs them."""
    curves = {name: [_rounded(row.get(name)) for row in done] for name in CURVES}
    for name, fact in FACTS.items():
        values = [_rounded((row.get("facts") or {}).get(fact)) for row in done]
        if any(value is not None for value in values):
            curves[name] = values
    return curves


def _metrics(done: Sequence[rows.Row]) -> dict[str, float | None]:
    """The metrics of a run; see `of_seed`.

    `clusters` is the number of clusters in use in the last round.
    """
    metrics = {
        **of_seed(done),
        "step_accuracy": step_accuracy(done),
        "last_accuracy": done[-1].get("accuracy"),
        "clusters": done[-1]["clusters_used"],
    }
    return {name: _rounded(value) for name, value in metrics.items()}


def _rounded(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else float(f"{value:.{DIGITS + 2}g}")
