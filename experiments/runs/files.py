"""Paths of the files of a run, and atomic writing.

DIR/run.json describes the run, and is its first file. DIR/METHOD/seed-S/ holds `config.toml`,
`metrics.jsonl`, `checkpoints/` and graphs, of variants of a method also `held_out.json`;
DIR/summary.json, DIR/rounds.csv and DIR/report.html come at the end, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bcfl.runtime import GRAPHS as GRAPHS
from bcfl.runtime import MethodFiles
from bcfl.runtime import write_aside as write_aside
from experiments.config.variants import Pair as Pair

SUPPORT = "support"


@dataclass(frozen=True)
class PairFiles(MethodFiles):
    """Files of one method with one seed of `bcfl run`.

    Attributes:
        folder: DIR/METHOD/seed-S.
    """

    @property
    def config(self) -> Path:
        """The scenario of this method and seed alone, defaults filled in."""
        return self.folder / "config.toml"

    @property
    def held_out(self) -> Path:
        """Scores of samples that the clients set aside, for variants of a method."""
        return self.folder / "held_out.json"


@dataclass(frozen=True)
class RunFiles:
    """Files of a whole run.

    Attributes:
        folder: folder of the run.
    """

    folder: Path

    @property
    def run(self) -> Path:
        """Scenario, versions and command of the run."""
        return self.folder / "run.json"

    @property
    def summary(self) -> Path:
        """Mean, standard deviation and values over seeds, by method and metric."""
        return self.folder / "summary.json"

    @property
    def rounds(self) -> Path:
        """All rounds of all methods as a table."""
        return self.folder / "rounds.csv"

    @property
    def report(self) -> Path:
        """The report as HTML."""
        return self.folder / "report.html"

    @property
    def uncertainty(self) -> Path:
        """Scores of calibration, selection and detection, if they were requested."""
        return self.folder / "uncertainty.json"

    @property
    def uncertainty_page(self) -> Path:
        """The same as HTML, with figures."""
        return self.folder / "uncertainty.html"

    def of(self, pair: Pair) -> PairFiles:
        """Files of one method with one seed."""
        return PairFiles(self.folder / pair.method / f"seed-{pair.seed}")
