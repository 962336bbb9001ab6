"""Time steps of a stream in figures over rounds, and the concepts of its clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bcfl.drawing import FAINT, Palette, read_concepts
from experiments.reports.terms import TRUE_GROUP
from experiments.runs.files import Pair, RunFiles
from experiments.runs.run_folder import RunFolder, read_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONCEPT = "concept"
Concepts = Mapping[str, tuple[int | None, ...]]
"""Concept of each client at each time step, None where unknown."""


@dataclass(frozen=True)
class TimeSteps:
    """The time steps of the rounds of a run.

    Attributes:
        of_round: time step of each round, from 0; empty where the data have one.
        differ: whether methods, of several runs, begin time steps in different rounds.
    """

    of_round: tuple[int, ...] = ()
    differ: bool = False

    @classmethod
    def of(cls, run: RunFolder) -> TimeSteps:
        """Those of a run; none where its methods differ in them, which those of several runs may.

        Args:
            run: the run.
        """
        known = [
            tuple(entry.get("time_step") or 0 for entry in run.first(method))
            for method in run.methods
        ]
        longest = max(known, key=len, default=())
        alike = all(steps == longest[: len(steps)] for steps in known)
        return cls(longest if alike and any(longest) else (), not alike)

    @property
    def begins(self) -> list[int]:
        """Rounds in which a time step begins, without the first round."""
        pairs = zip(self.of_round, self.of_round[1:], strict=False)
        return [number for number, (a, b) in enumerate(pairs, start=2) if a != b]

    @property
    def caption(self) -> str:
        """Sentence on time steps, and the lines that `marked` adds, after a space; or empty."""
        if self.differ:
            return (
                " Time steps begin in other rounds in one run than in another: compare their last "
                "rounds, since at one round clients may have samples of different time steps."
            )
        return " Thin vertical lines: a time step begins." if self.begins else ""

    def marked(self, draw: Callable[[], Figure]) -> Callable[[], Figure]:
        """The figure with a thin vertical line in each panel where a time step begins.

        Args:
            draw: makes the figure, whose horizontal axes are rounds.
        """

        def with_lines() -> Figure:
            figure = draw()
            for axes in figure.axes if self.begins else ():
                if axes.axison:
                    for number in self.begins:
                        axes.axvline(number - 0.5, color=FAINT, linewidth=0.6, zorder=1.5)
            return figure

        return with_lines


NO_STEPS = TimeSteps()


@dataclass(frozen=True, eq=False)
class Stream:
    """The clients' concepts over time, with what their samples are.

    Attributes:
        concepts: of each client at each time step; empty where they do not change or are unknown.
        steps: time steps of the rounds.
    """

    concepts: Concepts = field(default_factory=dict)
    steps: TimeSteps = NO_STEPS

    @property
    def kind(self) -> str:
        """What the true groups of clients are called."""
        return CONCEPT if self.concepts else TRUE_GROUP

    @classmethod
    def of(cls, run: RunFolder) -> Stream:
        """Read the concepts from the first graph that is there.

        Args:
            run: the run.

        Raises:
            NoRunError: a graph cannot be read.
        """
        steps = TimeSteps.of(run)
        paths = (
            RunFiles(run.path).of(Pair(method, run.first_seed(method))).graph("clusters")
            for method in (run.methods if steps.of_round else ())
        )
        path = next((path for path in paths if path.is_file()), None)
        nodes = {} if path is None else read_graph(path, "clusters").nodes
        return cls(
            {
                client: read_concepts(str(known["concepts"]))
                for client, known in nodes.items()
                if "concepts" in known
            },
            steps,
        )

    def groups_after(self, round: int, clients: Sequence[str]) -> list[int | None]:
        """Concept of each client at the time step of a round, None where unknown.

        Args:
            round: the round, from 1.
            clients: names of the clients that are wanted.
        """
        known = [self.concepts.get(client, (None,)) for client in clients]
        step = self.steps.of_round[min(round, len(self.steps.of_round)) - 1]
        return [own[min(step, len(own) - 1)] for own in known]

    def groups(self, clients: Sequence[str]) -> list[list[int | None]]:
        """(rounds, clients) concepts after each round, see `groups_after`.

        Args:
            clients: names of the clients that are wanted.
        """
        rounds = range(1, len(self.steps.of_round) + 1)
        return [self.groups_after(number, clients) for number in rounds]

    @property
    def palette(self) -> Palette:
        """Concepts of all clients at all time steps."""
        known = {concept for own in self.concepts.values() for concept in own}
        return Palette(change=bool(self.concepts)).including(known)

    @property
    def note(self) -> str:
        """Sentence on the concepts in figures of the last round; empty where they are fixed."""
        return "Concepts are those of the last time step." if self.concepts else ""
