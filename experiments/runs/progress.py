"""Display of progress: bars on a terminal, plain lines otherwise."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from experiments.config.variants import Pair

if TYPE_CHECKING:
    from bcfl.analysis import rows as metrics
    from experiments.config.scenario import Scenario

BAR_WIDTH = 20
LINES_PER_PAIR = 5
LONGEST_SILENCE = 30.0
RECENT = 5


@dataclass(eq=False)
class _Standing:
    """Progress of one method and seed.

    Attributes:
        label: name in front of the line.
        rounds: rounds in all.
        tells_agreement: whether agreement with the true groups tells anything.
        rows: rounds that were done.
    """

    label: str
    rounds: int
    tells_agreement: bool = True
    rows: list[metrics.Row] = field(default_factory=list)

    @property
    def done(self) -> int:
        return len(self.rows)

    @property
    def scores(self) -> str:
        """Accuracy, or RMSE of numbers, and agreement with the true groups after the last round."""
        if not self.rows:
            return ""
        last = self.rows[-1]
        accuracy, rmse, ari = last.get("accuracy"), last.get("rmse"), last["ari"]
        shown = "acc    –" if accuracy is None else f"acc {100 * accuracy:5.1f}"
        if rmse is not None:
            shown = f"RMSE {rmse:7.3g}"
        return shown if ari is None or not self.tells_agreement else f"{shown}   ARI {ari:5.2f}"

    @property
    def time(self) -> str:
        """Time left, or spent once all is done."""
        seconds = [row["seconds"]["total"] for row in self.rows]
        if self.done == self.rounds:
            return clock(sum(seconds))
        recent = seconds[-RECENT:]
        left = (self.rounds - self.done) * sum(recent) / max(len(recent), 1)
        return f"{clock(left)} left" if recent else ""

    @property
    def count(self) -> str:
        return f"{self.done:{len(str(self.rounds))}d}/{self.rounds}"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


class Display(Protocol):
    """Shows the progress of methods."""

    def show(self, pair: Pair, standing: _Standing, begins: bool) -> None:
        """Show the progress of one method and seed.

        Args:
            pair: method and seed.
            standing: its rounds so far.
            begins: whether it has just started or resumed.
        """
        ...


@dataclass(eq=False)
class Lines:
    """Plain lines: a few for each method and seed, and one at least every half minute.

    Attributes:
        console: to print on.
        shown: number of rounds already reported, by method and seed.
    """

    console: Console
    shown: dict[Pair, int] = field(default_factory=dict)

    def show(self, pair: Pair, standing: _Standing, begins: bool) -> None:
        """Write a line where one is due; see `Display.show`."""
        if begins:
            self.shown[pair] = 0
        silent = standing.rows[self.shown[pair] :]
        is_due = (
            standing.done % max(1, standing.rounds // LINES_PER_PAIR) == 0
            or standing.done == standing.rounds
            or sum(row["seconds"]["total"] for row in silent) > LONGEST_SILENCE
        )
        if standing.done and (begins or is_due):
            self.shown[pair] = standing.done
            text = f"{standing.label}  round {standing.count}   {standing.scores}   {standing.time}"
            self.console.print(text, soft_wrap=True)


@dataclass(eq=False)
class Bars:
    """A bar for each method and seed at work; finished ones become lines.

    Attributes:
        progress: display of the bars.
        tasks: bar of each method and seed at work.
    """

    progress: Progress
    tasks: dict[Pair, TaskID] = field(default_factory=dict)

    @classmethod
    def on(cls, console: Console) -> Bars:
        """Bars at the bottom of a terminal."""
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR_WIDTH),
            TextColumn("{task.fields[count]}   {task.fields[scores]}   {task.fields[time]}"),
        )
        return cls(Progress(*columns, console=console, transient=True))

    def show(self, pair: Pair, standing: _Standing, begins: bool) -> None:
        """Advance a bar; see `Display.show`."""
        if standing.done == standing.rounds:
            self._finish(pair, standing)
            return
        shown: dict[str, Any] = {
            "completed": standing.done,
            "count": standing.count,
            "scores": standing.scores,
            "time": standing.time,
        }
        if pair not in self.tasks:
            self.tasks[pair] = self.progress.add_task(
                standing.label, total=standing.rounds, **shown
            )
        else:
            self.progress.update(self.tasks[pair], **shown)

    def _finish(self, pair: Pair, standing: _Standing) -> None:
        if pair in self.tasks:
            self.progress.remove_task(self.tasks.pop(pair))
            self.progress.refresh()
        bar, count = ("━" * BAR_WIDTH, "green"), standing.count
        line = f" {count}   {standing.scores}   {standing.time}"
        text = Text.assemble(f"{standing.label} ", bar, line)
        self.progress.console.print(text, soft_wrap=True)


@contextmanager
def showing_progress(
    console: Console, scenario: Scenario, *, tells_agreement: bool = True
) -> Iterator[Any]:
    """Callbacks that show progress, and that stop the run after the current round on Ctrl-C.

    Args:
        console: where to show it.
        scenario: what is run.
        tells_agreement: whether agreement with the true groups tells anything of the methods.
    """
    from experiments.runs.runner import RunCallbacks

    labels = _labels(scenario)
    standings = {
        pair: _Standing(labels[pair], scenario.federation.rounds, tells_agreement)
        for pair in scenario.pairs
    }
    is_plain = not console.is_terminal or console.is_dumb_terminal
    bars = None if is_plain else Bars.on(console)
    display: Display = bars or Lines(console)

    def on_start(pair: Pair, done: Sequence[metrics.Row]) -> None:
        standings[pair].rows[:] = done
        display.show(pair, standings[pair], begins=True)

    def on_round(pair: Pair, row: metrics.Row) -> None:
        standings[pair].rows.append(row)
        display.show(pair, standings[pair], begins=False)

    def on_interrupt() -> None:
        console.print("stopping after the current round; Ctrl-C again to stop at once")

    with _interruptible(on_interrupt) as should_stop:
        if bars is None:
            yield RunCallbacks(on_start, on_round, should_stop)
        else:
            with bars.progress:
                yield RunCallbacks(on_start, on_round, should_stop)


def _labels(scenario: Scenario) -> dict[Pair, str]:
    several = len(scenario.seeds) > 1
    names = {
        pair: f"{pair.method} seed {pair.seed}" if several else pair.method
        for pair in scenario.pairs
    }
    width = max(map(len, names.values()))
    return {pair: f"{name:{width}}" for pair, name in names.items()}


@contextmanager
def _interruptible(on_interrupt: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a request; the second one is `KeyboardInterrupt` as ever."""
    requests: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        if requests:
            raise KeyboardInterrupt
        requests.append(number)
        on_interrupt()

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(requests)
    finally:
        signal.signal(signal.SIGINT, before)
