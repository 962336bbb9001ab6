"""What a run folder holds: methods and seeds, whoever wrote it.

`bcfl run`, a Python session, or the server of a deployed federation.
"""

from __future__ import annotations

import inspect
import shlex
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.methods import imported, keywords, made_by, misfit
from bcfl.runtime import FEDERATIONS, PAIRS
from experiments.config.options import chosen
from experiments.config.variants import Pair
from experiments.runs.deployed import DEPLOYMENT, gathered
from experiments.runs.files import RunFiles
from experiments.runs.plan import FolderError, read_description

if TYPE_CHECKING:
    from bcfl import Federation
    from bcfl.analysis import rows

EXPECTED = "a bcfl.Federation, or a function without arguments that makes one"


@dataclass(frozen=True, kw_only=True)
class RunIndex:
    """Methods and seeds of a run folder.

    Attributes:
        name: of the scenario, or of a run that was saved from Python.
        methods: labels of the methods.
        seeds: of the run.
        folder: of the run.
        federations: references of federations by method, of a run that was saved from Python; None
            for others.
        deployment: settings of each method, of a deployed federation; None for others.
        num_rounds: that each method has done in the end; 1 where no scenario tells.
        saved: methods and seeds of runs that were saved from Python; None for others, where every
            method has every seed.
    """

    name: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    folder: Path
    federations: Mapping[str, str] | None = None
    deployment: Mapping[str, Mapping[str, Any]] | None = None
    num_rounds: int = 1
    saved: tuple[Pair, ...] | None = None

    @property
    def has_scenario(self) -> bool:
        """Whether a scenario describes the run."""
        return self.federations is None and self.deployment is None

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Methods and seeds of the run: every method with the first seed, then with the next."""
        if self.saved is not None:
            return self.saved
        return tuple(Pair(name, seed) for seed in self.seeds for name in self.methods)

    def check(self, methods: Collection[str] = (), seed: int | None = None) -> None:
        """Check that the run has these methods, and this seed if it is given.

        Raises:
            ValueError: it has not.
        """
        for name in methods:
            chosen("method of this run", name, dict.fromkeys(self.methods))
        known = [pair.seed for pair in self.pairs if not methods or pair.method in methods]
        if seed is not None and seed not in known:
            seeds = ", ".join(map(str, dict.fromkeys(known)))
            raise ValueError(f"the run has no seed {seed}; it has {seeds}")

    def federation(self, method: str, seed: int) -> Federation:
        """The federation of a method of a run that no scenario describes.

        Args:
            method: its label.
            seed: of the run; functions that make federations are given it, if they take a `seed`.

        Raises:
            FolderError: the run does not say where its federation is.
            UnknownObjectError: it cannot be imported, or is of another kind.
            SamplesElsewhereError: the samples stay with the nodes of a deployment.
        """
        from bcfl import Federation

        if self.deployment is not None:
            return gathered(self.folder, self.deployment.get(method, {}))

        reference = (self.federations or {}).get(method)
        if reference is None:
            raise FolderError(
                f"the clients' samples and the network of {method!r} are not in the folder, which "
                "was saved from Python; save the run with federation='module:object', where "
                "object is a function that makes the federation. What needs neither is there: "
                "experiments.open(folder)[...].hypotheses, rows and bcfl graph"
            )
        found = imported(reference, "federation", EXPECTED)
        if inspect.isroutine(found):
            make = partial(found, seed=seed) if "seed" in keywords(found) else found
            found = made_by(reference, "federation", make)
        if not isinstance(found, Federation):
            raise misfit("federation", reference, found, EXPECTED)
        if self.saved is not None and found.seed != seed:
            raise FolderError(
                f"federation {reference!r} has seed {found.seed}, and the run of {method!r} has "
                f"seed {seed}; give a function that takes `seed` and makes the federation of it"
            )
        return found


def read_index(folder: Path) -> RunIndex:
    """Read which methods and seeds a folder holds.

    Args:
        folder: folder of a run.

    Raises:
        FolderError: there is no run in it, or its `run.json` is malformed.
    """
    table: Mapping[str, Any] = read_description(folder)
    try:
        return RunIndex(
            name=table["scenario"]["name"],
            methods=tuple(table["methods"]),
            seeds=tuple(table["seeds"]),
            folder=folder,
            federations=table.get(FEDERATIONS),
            deployment=table.get(DEPLOYMENT),
            num_rounds=int(table["scenario"].get("federation", {}).get("rounds", 1)),
            saved=tuple(Pair(*pair) for pair in table[PAIRS]) if PAIRS in table else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        path = RunFiles(folder).run
        raise FolderError(f"{path} isn't as it was written: {error!r}") from error


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What is there of the methods and seeds of a run: the one rule by which they are left out.

    Attributes:
        rounds: those of each method and seed that has any and can be read.
        damaged: what is wrong with the rounds of others.
        missing: what others of a finished run lack.
    """

    rounds: Mapping[Pair, Sequence[rows.Row]]
    damaged: Mapping[Pair, rows.MetricsError]
    missing: Mapping[Pair, str]

    @classmethod
    def of(cls, folder: Path) -> Contents:
        """The contents of a folder; damage is told, not raised.

        Args:
            folder: of a run.

        Raises:
            FolderError: there is no run in it, or its `run.json` is malformed.
        """
        from bcfl.analysis import rows

        index, files = read_index(folder), RunFiles(folder)
        found, damaged = rows.read_sound({pair: files.of(pair) for pair in index.pairs})
        least = index.num_rounds if files.summary.is_file() else 0
        remedy = f"; to run the rest: bcfl resume {shlex.quote(str(folder))}"
        missing = {
            pair: f"{pair} has {len(done)} of {least} rounds in {folder}"
            + (remedy if index.has_scenario else "")
            for pair, done in found.items()
            if len(done) < least
        }
        kept = {pair: done for pair, done in found.items() if done and pair not in missing}
        return cls(rounds=kept, damaged=damaged, missing=missing)

    @property
    def left_out(self) -> dict[Pair, str]:
        """Why methods and seeds of the run are left out, a sentence for each."""
        return {**{pair: str(error) for pair, error in self.damaged.items()}, **self.missing}


def read_contents(folder: Path) -> Contents:
    """The contents of a folder, with a warning for each method and seed that is left out.

    Args:
        folder: of a run.

    Raises:
        FolderError: there is no run in it, or its `run.json` is malformed.
        MetricsError: no rounds can be read, and some are damaged.

    Warns:
        DamagedRunWarning: a method and seed is damaged, or missing from a finished run.
    """
    from bcfl.analysis import rows

    contents = Contents.of(folder)
    if contents.damaged and not contents.rounds:
        raise next(iter(contents.damaged.values()))
    for why in contents.left_out.values() if contents.rounds else ():
        warnings.warn(f"left out: {why}", rows.DamagedRunWarning, stacklevel=3)
    return contents
