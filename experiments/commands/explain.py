"""`bcfl explain`: the story of a client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands.shared import Debug, console, explained

if TYPE_CHECKING:
    from experiments.reports.story import Chronicle, ClientReport, Companion, Matrix
    from experiments.scores.gains import ModelScore

MARGIN = 13
BLOCKS = "▁▂▃▄▅▆▇█"
WIDEST = 60
SURE = 0.99
SHOWN = 0.005
TOP = 5


@explained
def explain(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="DIR")],
    *,
    client: Annotated[
        str | None, typer.Option(help="Name or number of a client; all in a table if left out.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method; the best if left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; the first of the run.")] = None,
    debug: Debug = False,
) -> None:
    """Tell a client's story: where it was, how sure, whom it trains with, what it gains."""
    del debug
    from bcfl.runtime import limited_threads
    from experiments.reports.story import read_chronicle
    from experiments.runs.selection import choose, find_client

    pair, note = choose(folder, method, seed)
    with limited_threads(1):
        chronicle = read_chronicle(folder, pair)
        if client is None:
            lines = overview(chronicle.stories())
        else:
            (story,) = chronicle.stories([find_client(client, chronicle.names)])
            lines = tell(story, chronicle)
    done = f"{chronicle.state.round} of {chronicle.rounds} rounds"
    screen = console()
    screen.print(f"{pair}, after {done}", soft_wrap=True, markup=False)
    if note:
        screen.print(f"note: {note}", soft_wrap=True, markup=False)
    screen.print()
    for line in lines:
        screen.print(line, soft_wrap=True, markup=False)


def tell(story: ClientReport, chronicle: Chronicle) -> Iterator[str]:
    """A client's story in lines.

    Args:
        story: the client's.
        chronicle: the run that it is part of.
    """
    group = "" if story.group is None else f", true group {story.group}"
    yield f"{story.client}{group}"
    yield from _part("data", _data(story))
    yield from _part("where", [_where(story)])
    yield from _part("how sure", _how_sure(story, chronicle.remembers))
    yield from _part("trains with", _trains_with(story))
    yield from _part("gains", _gains(story, chronicle.pair.method))


def _part(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'' if number else title:{MARGIN}}{line}"


def _data(story: ClientReport) -> list[str]:
    sizes = " and ".join(f"{n} {view}" for view, n in story.num_samples.items())
    total = story.classes.sum()
    common = [c for c in story.classes.argsort()[::-1][:4] if story.classes[c] >= 0.05 * total]
    shares = ", ".join(f"{c} ({story.classes[c] / total:.0%})" for c in common)
    present = int((story.classes > 0).sum())
    of = f"{present} classes, most of them" if present > len(common) else "classes"
    return [f"{sizes} samples of {of} {shares}"]


def _where(story: ClientReport) -> str:
    parts, first = [], 1
    for cluster, run in groupby(story.clusters):
        last = first + len(list(run)) - 1
        rounds = f"round {first}" if first == last else f"rounds {first}-{last}"
        parts.append(f"{rounds} {_in_cluster(cluster)}")
        first = last + 1
    return " · ".join(parts)


def _in_cluster(cluster: int) -> str:
    return "not seen" if cluster < 0 else f"in cluster {cluster}"


def _how_sure(story: ClientReport, remembers: bool) -> list[str]:
    if story.cluster < 0:
        return ["it was never asked, so nothing is known of it"]
    order = story.probabilities.argsort()[::-1]
    shown = [c for c in order if story.probabilities[c] >= SHOWN]
    chances = ", ".join(f"{story.probabilities[c]:.0%} in cluster {c}" for c in shown)
    most = log(len(story.probabilities))
    entropy = f"entropy {story.entropy:.2f} of at most {most:.2f} nats" if most else "the only one"
    means = "given all rounds" if remembers else "by what became of each hypothesis"
    past = {"at the time": story.then, "in hindsight": story.hindsight}
    lines = [f"{chances}; {entropy}"]
    for name, matrix in past.items():
        lines.append(f"  {name:13} {spark(matrix, story.cluster)}  {_since(matrix, story.cluster)}")
    rounds = len(story.then)
    return [*lines, f"  chance of cluster {story.cluster} in rounds 1-{rounds}; hindsight: {means}"]


def spark(matrix: Matrix, cluster: int) -> str:
    """The probability of a cluster over rounds as a line of blocks, a dot for rounds unseen.

    Args:
        matrix: (rounds, clusters) probabilities.
        cluster: which one.
    """
    step = max(1, ceil(len(matrix) / WIDEST))
    parts = [matrix[start : start + step] for start in range(0, len(matrix), step)]
    return "".join(_block(float(part[:, cluster].mean())) if part.any() else "·" for part in parts)


def _block(chance: float) -> str:
    return BLOCKS[round(chance * (len(BLOCKS) - 1))]


def _since(matrix: Matrix, cluster: int) -> str:
    """Since which round the probability has stayed above that of being sure."""
    doubted = [number for number, row in enumerate(matrix, start=1) if row[cluster] < SURE]
    last = doubted[-1] if doubted else 0
    if last == len(matrix):
        return "not sure"
    return f"above {SURE:.0%} since round {last + 1}" if last else f"always above {SURE:.0%}"


def _trains_with(story: ClientReport) -> list[str]:
    others = [c for c in story.companions if c.now > 0.5]
    if not others:
        return ["nobody: no other client is more likely than not in its cluster"]
    head = f"{len(others)} of {len(story.companions)} other clients"
    if story.group is not None:
        same = sum(c.group == story.group for c in others)
        kin = sum(c.group == story.group for c in story.companions)
        head += (
            f": {same} of the {kin} others of its true group, {len(others) - same} of other groups"
        )
    top = [c for c in story.companions[:TOP] if c.now >= SHOWN]
    width = max(len(c.client) for c in top)
    return [head, *(f"  {c.client:{width}}  {_together(c, story)}" for c in top)]


def _together(companion: Companion, story: ClientReport) -> str:
    group = "" if companion.group is None else f"   group {companion.group}"
    return f"{companion.now:4.0%} now, {companion.always:4.0%} over all rounds{group}"


def _gains(story: ClientReport, method: str) -> list[str]:
    if not story.scores:
        return ["unknown: it has no test samples"]
    served, *others = story.scores
    chances = {f"cluster {c}": p for c, p in enumerate(story.probabilities)}
    others.sort(key=lambda score: -chances.get(score.model, -1.0))
    width = max(len(served.model), *(len(score.model) + 6 for score in others))
    title = f"on its {story.num_samples['test']} test samples"
    width = max(width, len(title))
    lines = [f"{title:{width}}  accuracy     NLL"]
    for score in (served, *others):
        chance = chances.get(score.model, 0.0)
        name = f"{score.model}{f' {chance:5.0%}' if chance >= SHOWN else ''}"
        lines.append(f"{name:{width}}  {100 * score.accuracy:8.1f}  {score.nll:6.3f}")
    return [*lines, *_balance(story, method), *_unsure(story)]


def _balance(story: ClientReport, method: str) -> list[str]:
    served, base = story.scores[0], _baseline(story)
    if base is None:
        hint = "a run of fedavg beside it would show what clusters are worth to it"
        return [] if method == "fedavg" else [hint]
    points, nats = 100 * (served.accuracy - base.accuracy), base.nll - served.nll
    accuracy = (
        f"{abs(points):.1f} points {'more' if points > 0 else 'less'}" if points else "as much"
    )
    return [
        f"against {base.model}: {accuracy} accuracy, {abs(nats):.3f} nats "
        f"{'less' if nats >= 0 else 'more'} loss"
    ]


def _unsure(story: ClientReport) -> list[str]:
    if story.entropy < SHOWN:
        return []
    return [
        f"of the {story.prediction_entropy:.3f} nats of uncertainty in a prediction, "
        f"{story.association_uncertainty:.3f} come from not knowing its cluster"
    ]


def overview(stories: Sequence[ClientReport]) -> Iterator[str]:
    """All clients in a table, and how many of them gain.

    Args:
        stories: of all clients.
    """
    width = max(6, *(len(story.client) for story in stories))
    against = any(_baseline(story) for story in stories)
    head = f"{'client':{width}}  group  cluster  since   sure  entropy  accuracy     NLL"
    yield head + ("   less fedavg's" if against else "")
    gained = []
    for story in stories:
        group = "–" if story.group is None else str(story.group)
        cluster = "–" if story.cluster < 0 else str(story.cluster)
        chance = f"{story.probabilities.max():.0%}" if story.cluster >= 0 else "–"
        line = f"{story.client:{width}}  {group:>5}  {cluster:>7}  {_stays(story):>5}"
        line += f"  {chance:>5}  {story.entropy:7.2f}"
        if story.scores:
            served, base = story.scores[0], _baseline(story)
            line += f"  {100 * served.accuracy:8.1f}  {served.nll:6.3f}"
            if base:
                gained.append(100 * (served.accuracy - base.accuracy))
                line += f"   {gained[-1]:+5.1f} {served.nll - base.nll:+6.2f}".replace("-", "−")
        yield line
    if gained:
        more, less = sum(g > 0 for g in gained), sum(g < 0 for g in gained)
        same = len(gained) - more - less
        yield ""
        yield f"against fedavg: {more} clients gain accuracy, {less} lose, {same} neither"
    yield "one client's story: --client, with its name or number"


def _baseline(story: ClientReport) -> ModelScore | None:
    return next((s for s in story.scores[1:] if not s.model.startswith("cluster ")), None)


def _stays(story: ClientReport) -> int:
    """The round since which it has been where it is."""
    clusters = story.clusters
    moves = [n for n, cluster in enumerate(clusters, start=1) if cluster != clusters[-1]]
    return (moves[-1] if moves else 0) + 1
