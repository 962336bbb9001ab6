"""What the report says in words: what was run, what failed, what to be careful about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.run_folder import RunFolder

MOST_FAILURES = 20


def headline(run: RunFolder) -> str:
    """What was run, in one sentence."""
    data = run.scenario.get("data", {})
    source = data.get("name") if isinstance(data, Mapping) else data
    methods = counted(len(run.methods), "method")
    rounds = max(run.series(method, "round").shape[1] for method in run.methods)
    seeds = counted(len({s for method in run.methods for s in run.seeds(method)}), "seed")
    on = f" on {source}" if source else ""
    return f"{methods}{on}, {_clients(run)}{counted(rounds, 'round')}, {seeds}."


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as `1 round` or `25 rounds`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names and text."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield prefix + name, ", ".join(map(str, value))
        else:
            yield prefix + name, str(value)


def failures(run: RunFolder) -> list[tuple[str, str, int]]:
    """Method, sentence and number of times, for what clients failed to do; most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for method in run.methods:
        for rounds in run.rounds[method].values():
            for entry in rounds:
                counts.update((method, text) for text in entry.get("failures") or ())
    return [(method, text, times) for (method, text), times in counts.most_common()]


def warnings(run: RunFolder) -> list[str]:
    """Sentences on how far the fused posteriors can be trusted."""
    found = []
    for method in run.methods:
        floored = run.series(method, "num_floored")
        outside = run.series(method, "outside_hull")
        if np.nansum(floored) > 0:
            found.append(
                f"{method}: {np.nanmean(floored):,.0f} curvature entries per round were raised to "
                "the floor, as data say nothing about these parameters (inputs that are always "
                "zero, units that never fire). Their uncertainty is that of the floor."
            )
        if np.nansum(outside) > 0:
            found.append(
                f"{method}: in the worst round {np.nanmax(outside):.2%} of the parameters of a "
                "fused cluster lay outside the range of the clients' own. Much more than a few "
                "per cent means that fusion is unstable: take precision_weighted fusion, a "
                "smaller learning rate or fewer local steps."
            )
    return found


def _clients(run: RunFolder) -> str:
    partition = run.scenario.get("partition", {})
    options = dict(flat(partition)) if isinstance(partition, Mapping) else {}
    groups = next((options[key] for key in options if key.split(".")[-1] == "groups"), "")
    clients = max(sum(run.first(method)[-1].get("cluster_sizes") or [0]) for method in run.methods)
    if not clients:
        return ""
    inside = f" in {counted(int(groups), 'true group')}" if groups.isdecimal() else ""
    return f"{counted(clients, 'client')}{inside}, "
