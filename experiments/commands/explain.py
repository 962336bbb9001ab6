"""`bcfl explain`: the report of one client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil, isnan, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from experiments.commands import completion
from experiments.commands.shared import Debug, MethodOfRun, console, explained

if TYPE_CHECKING:
    from experiments.reports.client_report import ClientReport, Matrix, Peer, RunHistory
    from experiments.scores.gains import ModelScore

T = TypeVar("T")
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
        str | None,
        typer.Option(
            help="Name or number of a client; all in a table if left out.",
            autocompletion=completion.clients_of_run,
        ),
    ] = None,
    method: MethodOfRun = None,
    seed: Annotated[int | None, typer.Option(help="Seed; the first of the run.")] = None,
    debug: Debug = False,
) -> None:
    """Report on one client: its clusters over rounds, their probabilities, its peers and scores."""
    del debug
    from experiments.runs.index import read_index

    read_index(folder).check(() if method is None else (method,), seed)
    from bcfl.runtime import limited_threads
    from experiments.reports.client_report import read_history
    from experiments.runs.selection import choose, find_client

    pair, note = choose(folder, method, seed)
    with limited_threads(1):
        history = read_history(folder, pair)
        if client is None:
            lines = overview(history.client_reports())
        else:
            (report,) = history.client_reports([find_client(client, history.names)])
            lines = in_words(report, history)
    done = f"{history.run.state.round} of {history.rounds} rounds"
    screen = console()
    screen.print(f"{pair}, after {done}", soft_wrap=True)
    if note:
        screen.print(f"note: {note}", soft_wrap=True)
    screen.print()
    for line in lines:
        screen.print(line, soft_wrap=True)


def in_words(report: ClientReport, history: RunHistory) -> Iterator[str]:
    """Lines of a client's report.

    Args:
        report: the report of the client.
        history: the run.
    """
    group = "" if report.group is None else f", {_kind(report, 'true group')} {report.group}"
    if report.concepts:
        group += f" at time step {report.time_step} (over steps: {report.concepts})"
    yield f"{report.client}{group}"
    yield from _part("data", _data(report))
    yield from _part("where", _where(report))
    yield from _part("how sure", _how_sure(report, history.carries_weights))
    yield from _part("trains with", _trains_with(report))
    yield from _part("gains", _gains(report, history.pair.method))


def _part(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'' if number else title:{MARGIN}}{line}"


def _data(report: ClientReport) -> list[str]:
    sizes = " and ".join(f"{n} {view}" for view, n in report.num_samples.items())
    total = report.classes.sum()
    common = [c for c in report.classes.argsort()[::-1][:4] if report.classes[c] >= 0.05 * total]
    names: Sequence[object] = report.class_names or range(len(report.classes))
    shares = ", ".join(f"{names[c]} ({report.classes[c] / total:.0%})" for c in common)
    present = int((report.classes > 0).sum())
    of = f"{present} classes, most of them" if present > len(common) else "classes"
    steps = "" if report.time_step is None else " of all time steps,"
    return [f"{sizes} samples{steps} of {of} {shares}"]


def _where(report: ClientReport) -> list[str]:
    """The clusters of the leading hypothesis, then the rounds in which belief is in another."""
    parts = [
        f"{_rounds(first, last)} {_in_cluster(cluster)}"
        for cluster, first, last in _spans(report.labels.tolist())
    ]
    return [" · ".join(parts), *_elsewhere(report)]


def _elsewhere(report: ClientReport) -> list[str]:
    known = zip(report.believed, report.labels.tolist(), strict=True)
    others = [believed if believed != label else None for believed, label in known]
    parts = []
    for cluster, first, last in _spans(others):
        if cluster is not None:
            chances = report.filtered[first - 1 : last, cluster]
            highest = f"{'up to ' if first < last else ''}{chances.max():.0%}"
            parts.append(f"{_rounds(first, last)} cluster {cluster} ({highest})")
    return [f"  most probable by belief: {' · '.join(parts)}"] if parts else []


def _spans(clusters: Sequence[T]) -> Iterator[tuple[T, int, int]]:
    """Each cluster with the first and the last of the rounds in which it does not change."""
    first = 1
    for cluster, run in groupby(clusters):
        last = first + len(list(run)) - 1
        yield cluster, first, last
        first = last + 1


def _rounds(first: int, last: int) -> str:
    return f"round {first}" if first == last else f"rounds {first}-{last}"


def _in_cluster(cluster: int) -> str:
    return "not seen" if cluster < 0 else f"in cluster {cluster}"


def _how_sure(report: ClientReport, carries_weights: bool) -> list[str]:
    if not report.probabilities.any():
        return ["it never took part, so nothing is known of it"]
    order = report.probabilities.argsort()[::-1]
    shown = [c for c in order if report.probabilities[c] >= SHOWN]
    chances = ", ".join(f"{report.probabilities[c]:.0%} in cluster {c}" for c in shown)
    most = log(len(report.probabilities))
    entropy = f"entropy {report.entropy:.2f} of at most {most:.2f} nats" if most else "the only one"
    means = "given all rounds" if carries_weights else "by what became of each hypothesis"
    cluster = report.believed[-1] if report.cluster < 0 else report.cluster
    past = {"filtered": report.filtered, "smoothed": report.smoothed}
    lines = [f"{chances}; {entropy}"]
    for name, matrix in past.items():
        lines.append(f"  {name:13} {spark(matrix, cluster)}  {_since(matrix, cluster)}")
    rounds = len(report.filtered)
    return [*lines, f"  chance of cluster {cluster} in rounds 1-{rounds}; smoothed: {means}"]


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
    """First round from which on the probability exceeds the level of certainty."""
    doubted = [number for number, row in enumerate(matrix, start=1) if row[cluster] < SURE]
    last = doubted[-1] if doubted else 0
    if last == len(matrix):
        return "not sure"
    return f"above {SURE:.0%} since round {last + 1}" if last else f"always above {SURE:.0%}"


def _trains_with(report: ClientReport) -> list[str]:
    others = [c for c in report.peers if c.latest > 0.5]
    if not others:
        return ["no other client shares its cluster with a probability above 50%"]
    head = f"{len(others)} of {len(report.peers)} other clients"
    if report.group is not None:
        same = sum(c.group == report.group for c in others)
        possible = sum(c.group == report.group for c in report.peers)
        head += f": {same} of the {possible} others of its {_kind(report, 'true group')}"
        head += f", {len(others) - same} of other {_kind(report)}s"
    top = [c for c in report.peers[:TOP] if c.latest >= SHOWN]
    width = max(len(c.client) for c in top)
    names = f"  {'':{width}}  believed  all rounds"
    means = (
        f"  believed: probability after round {len(report.filtered)}; all rounds: mean weight of "
        "the kept hypotheses that join them"
    )
    rest = sum(c.latest >= SHOWN for c in report.peers) - len(top)
    more = [f"  and {rest} more"] if rest else []
    shown = [f"  {c.client:{width}}  {_together(c, report)}" for c in top]
    return [head, names, *shown, *more, means]


def _together(peer: Peer, report: ClientReport) -> str:
    group = "" if peer.group is None else f"   {_kind(report)} {peer.group}"
    return f"{peer.latest:7.0%}  {peer.mean:10.0%}{group}"


def _kind(report: ClientReport, otherwise: str = "group") -> str:
    """What the true groups of clients are called: in a stream, concepts."""
    return "concept" if report.concepts else otherwise


def _gains(report: ClientReport, method: str) -> list[str]:
    if not report.scores:
        return ["unknown: it has no test samples"]
    served, *others = report.scores
    chances = {f"cluster {c}": p for c, p in enumerate(report.probabilities)}
    others.sort(key=lambda score: -chances.get(score.model, -1.0))
    width = max(len(served.model), *(len(score.model) + 6 for score in others))
    step = "" if report.time_step is None else f" of time step {report.time_step}"
    title = f"on its {served.num_samples} test samples{step}"
    width = max(width, len(title))
    lines = [f"{title:{width}}  accuracy     NLL"]
    for score in (served, *others):
        chance = chances.get(score.model, 0.0)
        name = f"{score.model}{f' {chance:5.0%}' if chance >= SHOWN else ''}"
        lines.append(f"{name:{width}}  {_percent(score.accuracy):>8}  {score.nll:6.3f}")
    return [*lines, *_balance(report, method), *_unsure(report)]


def _percent(accuracy: float) -> str:
    return "–" if isnan(accuracy) else f"{100 * accuracy:.1f}"


def _balance(report: ClientReport, method: str) -> list[str]:
    served, base = report.scores[0], _baseline(report)
    if base is None:
        hint = "a run of fedavg beside it would show what clusters are worth to it"
        return [] if method == "fedavg" else [hint]
    points, nats = 100 * (served.accuracy - base.accuracy), base.nll - served.nll
    accuracy = (
        f"{abs(points):.1f} points {'more' if points > 0 else 'less'}" if points else "as much"
    )
    loss = f"{abs(nats):.3f} nats {'less' if nats >= 0 else 'more'} loss"
    if isnan(points):
        return [f"against {base.model}: {loss}"]
    return [f"against {base.model}: {accuracy} accuracy, {loss}"]


def _unsure(report: ClientReport) -> list[str]:
    if report.entropy < SHOWN or isnan(report.prediction_entropy):
        return []
    return [
        f"of the {report.prediction_entropy:.3f} nats of uncertainty in a prediction, "
        f"{report.association_uncertainty:.3f} come from not knowing its cluster"
    ]


def overview(reports: Sequence[ClientReport]) -> Iterator[str]:
    """All clients in a table, the most uncertain first, and how many of them gain.

    Args:
        reports: reports of all clients.
    """
    width = max(6, *(len(report.client) for report in reports))
    against = any(_baseline(report) for report in reports)
    kind = _kind(reports[0]) if reports else "group"
    head = f"{'client':{width}}  {kind}  cluster  since round   sure  entropy  accuracy     NLL"
    yield head + ("   less fedavg's" if against else "")
    gained = []
    for report in sorted(reports, key=lambda report: -report.entropy):
        group = "–" if report.group is None else str(report.group)
        cluster = "–" if report.cluster < 0 else str(report.cluster)
        chance = f"{report.probabilities[report.cluster]:.0%}" if report.cluster >= 0 else "–"
        line = f"{report.client:{width}}  {group:>{len(kind)}}  {cluster:>7}  {_stays(report):>11}"
        line += f"  {chance:>5}  {report.entropy:7.2f}"
        if report.scores:
            served, base = report.scores[0], _baseline(report)
            line += f"  {_percent(served.accuracy):>8}  {served.nll:6.3f}"
            if base:
                gained.append(100 * (served.accuracy - base.accuracy))
                line += f"   {gained[-1]:+5.1f} {served.nll - base.nll:+6.2f}".replace("-", "−")
        yield line
    if gained:
        more, less = sum(g > 0 for g in gained), sum(g < 0 for g in gained)
        same = len(gained) - more - less
        yield ""
        yield f"against fedavg: {more} clients gain accuracy, {less} lose, {same} neither"
    yield from _believed_elsewhere(reports)
    yield "for the report of one client: --client NAME or NUMBER"


def _believed_elsewhere(reports: Sequence[ClientReport]) -> Iterator[str]:
    """A line on clients whose most probable cluster is another one than theirs, if there are any.

    Args:
        reports: of all clients.
    """
    told = [
        f"{report.client} (cluster {cluster}, {report.probabilities[cluster]:.0%})"
        for report in reports
        if (cluster := report.believed[-1]) not in (-1, report.cluster)
    ]
    if told:
        others = ", ".join(told)
        yield f"clusters of the leading hypothesis; another is most probable by belief for {others}"


def _baseline(report: ClientReport) -> ModelScore | None:
    from experiments.scores.gains import SERVED

    others = (s for s in report.scores[1:] if s.model != SERVED)
    return next((s for s in others if not s.model.startswith("cluster ")), None)


def _stays(report: ClientReport) -> int:
    """First round from which on the client has stayed in its cluster of the leading hypothesis."""
    clusters = report.labels.tolist()
    moves = [n for n, cluster in enumerate(clusters, start=1) if cluster != clusters[-1]]
    return (moves[-1] if moves else 0) + 1
