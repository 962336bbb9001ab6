"""All benchmarks: ratios measured side by side in one run.

`python -m tests.bench [NAME...]` runs those whose name contains one of NAMEs, and prints a table.
With no NAME all run, and the table is written to `tests/bench/results/`, with machine, versions
and date.
"""

import importlib
import os
import platform
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

MODULES = (
    "assignment.ranking",
    "posteriors.curvature",
    "federation.methods",
    "federation.executors",
    "federation.rounds",
    "federation.scaling",
    "peers.fedbase",
    "peers.flower",
)
PACKAGES = ("torch", "numpy", "scipy", "lap", "laplace-torch", "backpack-for-pytorch")


def machine():
    """The machine in words, and the versions of what matters."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}, load {os.getloadavg()[0]:.1f}"
    )


def main(names):
    """Run what was asked for, print and keep the table."""
    chosen = [m for m in MODULES if not names or any(name in m for name in names)]
    if not chosen:
        sys.exit(f"no benchmark is called {names}; there are {', '.join(MODULES)}")
    about, rows = machine(), []
    for name in track(chosen, description="benchmarks"):
        rows += importlib.import_module(f"tests.bench.{name}").run()
    table = Table("what", "ours, ms", "baseline, ms", "ratio", "limited by", title=about)
    lines = [f"# {datetime.now():%Y-%m-%d}: {about}", "", "| what | ours, ms | baseline, ms | "]
    lines[-1] += "ratio | limited by |\n|---|---:|---:|---:|---|"
    for row in rows:
        cells = (row.name, f"{row.ours_ms:.2f}", f"{row.baseline_ms:.2f}", f"{row.ratio:.2f}x")
        table.add_row(*cells, row.limit)
        lines.append(f"| {' | '.join((*cells, row.limit))} |")
    Console().print(table)
    if names:
        return
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    target = folder / f"{datetime.now():%Y-%m-%d}.md"
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
