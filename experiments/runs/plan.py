"""The plan of a run: `run.json`, the first file of its folder, from which it can be resumed."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import tomli_w

from bcfl.executors import ExecutorConfig
from bcfl.runtime import FEDERATIONS, RUN_FORMAT
from experiments.config import executor_options
from experiments.config.scenario import Scenario, from_table
from experiments.config.variants import Pair
from experiments.runs.deployed import DEPLOYMENT
from experiments.runs.files import RunFiles, write_aside

if TYPE_CHECKING:
    from experiments.runs.runner import Experiment

PACKAGES = ("bcfl", "torch", "numpy", "scipy", "scikit-learn")


class FolderError(ValueError):
    """A folder in which no run can be started or read."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An experiment with device, threads and executor.

    Results may differ in their last bits between devices and numbers of threads, so both are kept
    for as long as the run lives.

    Attributes:
        scenario: the experiment.
        device: `cpu`, `cuda` or `cuda:N`.
        threads: of each process.
        jobs: number of parallel processes.
        command: shell command that repeats it.
        executor: executor of the clients' work, with its options.
        cluster: address of the Ray cluster on which methods and seeds run; None is this process.
    """

    scenario: Scenario
    device: str
    threads: int
    jobs: int
    command: str
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)
    cluster: str | None = None

    def __post_init__(self) -> None:
        for name in ("threads", "jobs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.jobs > 1 and (self.executor.name == "flower" or self.cluster):
            what = "a cluster" if self.cluster else "executor 'flower'"
            raise ValueError(f"jobs must be 1 with {what}, got {self.jobs}")
        if self.cluster and self.executor.name == "flower":
            raise ValueError("cluster must be left out with executor 'flower', which has its own")

    def config(self, pair: Pair) -> str:
        """The scenario of one method and seed alone, as TOML that `bcfl run` takes."""
        alone = replace(self.scenario, methods=(pair.method,), seeds=(pair.seed,))
        return tomli_w.dumps(alone.table())


def new_folder(scenario: str, now: datetime) -> Path:
    """A folder in `runs` that does not exist yet.

    Args:
        scenario: its name.
        now: date and time, part of the folder's name.
    """
    folder = Path("runs") / f"{scenario}-{now:%Y%m%d-%H%M%S}"
    taken, number = folder, 2
    while taken.exists():
        taken, number = folder.with_name(f"{folder.name}-{number}"), number + 1
    return taken


def check_free(folder: Path) -> None:
    """Check that a folder is new or empty.

    Raises:
        FolderError: it holds a run or other files, or is no folder.
    """
    if RunFiles(folder).run.exists():
        raise FolderError(
            f"{folder} holds a run already; to resume it: bcfl resume "
            f"{shlex.quote(str(folder))}; to start another, give a new folder"
        )
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise FolderError(f"{place} is a file; give a new folder")
    if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise FolderError(f"{folder} holds other files; give a new or empty folder")


def write_plan(plan: Plan, setup: Experiment, files: RunFiles) -> None:
    """Write `run.json`, then the configuration of each method and seed.

    Args:
        plan: what to run.
        setup: the same, built.
        files: where to write.
    """
    partition, dataset = setup.partition(plan.scenario.seeds[0]), setup.dataset
    description = {
        "format": RUN_FORMAT,
        "scenario": plan.scenario.table(),
        "methods": list(plan.scenario.methods),
        "seeds": list(plan.scenario.seeds),
        "command": plan.command,
        "execution": {
            "device": plan.device,
            "threads": plan.threads,
            "jobs": plan.jobs,
            "cluster": plan.cluster,
            **executor_options.as_table(plan.executor),
        },
        "machine": _machine(plan.device),
        "versions": versions(),
        "data": {
            "dataset": dataset.name,
            "source": dataset.source,
            "samples": len(dataset),
            "classes": dataset.num_outputs,
            "clients": len(partition),
            "groups": partition.num_groups,
            **({"group_names": [*partition.group_names]} if partition.group_names else {}),
            **({"steps": partition.num_steps} if partition.num_steps > 1 else {}),
        },
        "started": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    write_aside(files.run, json.dumps(description, indent=2, ensure_ascii=False) + "\n")
    write_configs(plan, files)


def write_configs(plan: Plan, files: RunFiles) -> None:
    """Write the configuration of each method and seed where it is missing.

    Args:
        plan: of the run.
        files: of its folder.
    """
    for pair in plan.scenario.pairs:
        if not files.of(pair).config.is_file():
            write_aside(files.of(pair).config, plan.config(pair))


def read_plan(folder: Path) -> Plan:
    """Read the plan of a folder.

    Raises:
        FolderError: there is no run in it, or its `run.json` is malformed.
    """
    table = read_description(folder)
    if DEPLOYMENT in table:
        raise FolderError(
            f"{folder} is of a deployed federation, whose samples stay with its nodes; go on "
            f"with: bcfl federation resume {shlex.quote(str(folder.parent))}"
        )
    if FEDERATIONS in table:
        raise FolderError(
            f"{folder} was saved from Python, so there is no scenario by which to go on; continue "
            "it there with Federation(...).run(rounds, state=...)"
        )
    try:
        execution = table["execution"]
        return Plan(
            scenario=from_table(table["scenario"]),
            device=execution["device"],
            threads=execution["threads"],
            jobs=execution["jobs"],
            command=table["command"],
            executor=executor_options.from_table(execution),
            cluster=execution.get("cluster"),
        )
    except (KeyError, TypeError, ValueError) as error:
        why = error if isinstance(error, ValueError) else repr(error)
        raise FolderError(f"{RunFiles(folder).run} isn't as it was written: {why}") from error


def read_description(folder: Path) -> Mapping[str, Any]:
    """The contents of `run.json`.

    Raises:
        FolderError: there is no run in the folder, or the file is no JSON or of another version.
    """
    path = RunFiles(folder).run
    if not path.is_file():
        missing = "is a file, no folder of a run" if folder.exists() else "doesn't exist"
        what = "holds no run (it has no run.json)" if folder.is_dir() else missing
        raise FolderError(f"{folder} {what}; give a folder that `bcfl run` or `save` wrote")
    try:
        table: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FolderError(f"{path} is no JSON: {error}") from error
    if not isinstance(table, dict):
        raise FolderError(f"{path} must hold a JSON object, got a {type(table).__name__}")
    check_format(table, path)
    return table


def check_format(description: Mapping[str, Any], path: Path) -> None:
    """Refuse the contents of a `run.json` that another version wrote.

    Raises:
        FolderError: its format is another.
    """
    if not {"format", "scenario"} & set(description):
        raise FolderError(
            f"{path} lacks its contents: format, scenario, methods and seeds; put back the file "
            "that `bcfl run` wrote, or run it again into a new folder"
        )
    found = description.get("format", 1)
    if found != RUN_FORMAT:
        raise FolderError(
            f"{path} has format {found}, this version of bcfl reads format {RUN_FORMAT}; "
            "read it with the version that wrote it, or run it again into a new folder"
        )


def changed_versions(folder: Path) -> dict[str, tuple[str, str]]:
    """Packages whose version has changed since the run began: old and new version."""
    before, now = read_description(folder).get("versions", {}), versions()
    return {name: (before[name], now[name]) for name in now if before.get(name, "") != now[name]}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _machine(device: str) -> dict[str, Any]:
    name = "CPU"
    if device.startswith("cuda"):
        import torch

        name = torch.cuda.get_device_name(device)
    return {"cpus": joblib.cpu_count(), "device": name, "system": platform.system()}
