"""What a reader should know of the numbers of a run: failures, doubtful results, and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bcfl.rounds import failed_in_test
from experiments.config.variants import Variant, flattened
from experiments.reports.round_history import Histories
from experiments.runs.files import Pair
from experiments.runs.grids import choices
from experiments.runs.run_folder import Round, RunFolder

SHOWN = 5
"""Names that a sentence lists at most."""


def failures(run: RunFolder) -> list[tuple[str, str, int]]:
    """Method, message and count of the failures of clients, most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for method in run.methods:
        for rounds in run.rounds[method].values():
            for entry in rounds:
                counts.update((method, text) for text in entry.get("failures") or ())
    return [(method, text, times) for (method, text), times in counts.most_common()]


def warnings(run: RunFolder, unreadable: Mapping[Pair, str]) -> list[str]:
    """What makes results doubtful, or asks for something to be done.

    Args:
        run: the run.
        unreadable: why checkpoints of its methods cannot be read.
    """
    return [*folder_warnings(run, unreadable), *round_warnings(run)]


def folder_warnings(run: RunFolder, unreadable: Mapping[Pair, str]) -> list[str]:
    """Warnings about the files, the data and the choices of one run.

    Args:
        run: the run.
        unreadable: why checkpoints of its methods cannot be read.
    """
    return [
        *(f"Left out: {why}." for why in run.left_out.values()),
        *(f"Figures from checkpoints lack {pair}: {why}." for pair, why in unreadable.items()),
        *class_warnings(run),
        *edge_warnings(run),
    ]


def round_warnings(run: RunFolder) -> list[str]:
    """Warnings about what happened in rounds; methods may be of several runs."""
    return [
        *failure_warnings(run),
        *missing_record_warnings(run),
        *support_warnings(run),
        *fusion_warnings(run),
    ]


def notes(run: RunFolder, histories: Histories) -> list[str]:
    """What is worth knowing although nothing is wrong.

    Args:
        run: the run.
        histories: of the first seed of its methods.
    """
    return [*single_partition_notes(run, histories), *floor_notes(run)]


def failure_warnings(run: RunFolder) -> list[str]:
    """Clients without a usable answer in every round, and those whose test failed in every round.

    A client counts where a failure names it in each round of a method and seed.
    """
    told = []
    if found := _in_every_round(run, _failed_clients):
        told.append(
            f"Clients that failed in every round: {found}. What a method shows for them is the "
            "model they were sent, not what they trained."
        )
    if found := _in_every_round(run, _untested_clients):
        told.append(
            f"Clients whose test failed in every round: {found}. The scores of predictions of a "
            "method are without them."
        )
    return told


def _in_every_round(run: RunFolder, named: Callable[[Round], set[str]]) -> str:
    """Clients that each round of a seed names, by method; empty where there are none."""
    always: dict[str, set[str]] = {}
    for method in run.methods:
        for rounds in run.rounds[method].values():
            always.setdefault(method, set()).update(set.intersection(*map(named, rounds)))
    return "; ".join(
        f"{_few(sorted(clients))} ({method})" for method, clients in always.items() if clients
    )


def untrained_methods(run: RunFolder) -> list[str]:
    """Methods for which every client that was asked failed in every round of every seed."""
    return [method for method in run.methods if _is_untrained(run.rounds[method])]


def missing_record_warnings(run: RunFolder) -> list[str]:
    """Methods with rounds of which only the hypotheses are known."""
    missing = []
    for method in run.methods:
        for seed, rounds in run.rounds[method].items():
            unknown = [entry["round"] for entry in rounds if entry["participants"] is None]
            of = f"{method}, seed {seed}" if len(run.rounds[method]) > 1 else method
            missing += [f"1 to {unknown[-1]} of {of}"] if unknown else []
    if not missing:
        return []
    return [
        f"Rounds without records: {'; '.join(missing)}. The run went on from a checkpoint, so that "
        "scores and costs before it are not known; costs are those of the rounds after it."
    ]


def _is_untrained(rounds: Mapping[int, Sequence[Round]]) -> bool:
    entries = (entry for done in rounds.values() for entry in done)
    known = [entry for entry in entries if entry["participants"] is not None]
    return bool(known) and all(len(_failed_clients(e)) >= e["participants"] for e in known)


def single_partition_notes(run: RunFolder, histories: Histories) -> list[str]:
    """Methods whose hypotheses of the last round are one partition of the clients.

    Args:
        run: the run.
        histories: of the first seed of its methods.
    """
    alike = {}
    for method, snapshots in histories.items():
        kept = snapshots[-1].associations
        partitions = {tuple(first_seen(a.labels.tolist())) for a in kept}
        if len(kept) > 1 and len(partitions) == 1:
            alike[method] = f"{len(kept)} of {method}"
    if not alike:
        return []
    return [
        f"Hypotheses of the last round that are one partition of the clients: "
        f"{', '.join(alike.values())} ({run.seed_shown(alike)}). Their weights say which models "
        "are more probable, not which clusters."
    ]


def class_warnings(run: RunFolder) -> list[str]:
    """A sentence where the data set has a single class."""
    clients = run.clients
    if clients is None or (clients.class_counts().sum(axis=0) > 0).sum() != 1:
        return []
    return ["All samples are of one class: scores of predictions tell no methods apart."]


def edge_warnings(run: RunFolder) -> list[str]:
    """Chosen variants that have the smallest or largest value of an option that was tried."""
    ends = []
    for choice in choices(run.summary):
        options = [flattened(Variant.of(label).options) for label in choice.scores]
        for name, value in flattened(Variant.of(choice.variant).options).items():
            tried = sorted({o[name] for o in options if isinstance(o.get(name), int | float)})
            if len(tried) > 2 and value in (tried[0], tried[-1]):
                ends.append(f"{name} = {value} of {tried[0]} to {tried[-1]} ({choice.method})")
    if not ends:
        return []
    return [f"Chosen at an end of the values tried: {', '.join(ends)}. Try values beyond."]


def first_seen(labels: Sequence[int]) -> list[int]:
    """Clusters numbered in the order of their first clients, so that equal partitions are equal.

    Args:
        labels: cluster of each client, -1 for none.
    """
    numbers: dict[int, int] = {-1: -1}
    return [numbers.setdefault(label, len(numbers) - 1) for label in labels]


def _failed_clients(entry: Mapping[str, Any]) -> set[str]:
    """Clients that the failures of a round name, those of tests left out."""
    told = entry.get("failures") or ()
    return {text.partition(":")[0] for text in told if not failed_in_test(text)}


def _untested_clients(entry: Mapping[str, Any]) -> set[str]:
    """Clients whose test failed in a round, by its failures."""
    return {text.partition(":")[0] for text in entry.get("failures") or () if failed_in_test(text)}


def _few(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def support_warnings(run: RunFolder) -> list[str]:
    """A sentence on support tests of too few samples."""
    few = {m: run.facts(m, "devices_with_too_few_pairs") for m in run.methods}
    underpowered = [f"{np.nanmax(v):,.0f} ({m})" for m, v in few.items() if np.nansum(v) > 0]
    if not underpowered:
        return []
    return [
        "Devices with too few samples for the support test, maximum per round: "
        f"{', '.join(underpowered)}. Their p-values cannot reach the significance level (at "
        "0.1 that takes four samples on which two models differ), so their clusters receive "
        "no support and never merge: hold out more samples (validation), or raise alpha."
    ]


def floor_notes(run: RunFolder) -> list[str]:
    """A sentence on curvature at the floor."""
    floored = {m: run.series(m, "num_floored") for m in run.methods}
    raised = [f"{np.nanmean(v):,.0f} ({m})" for m, v in floored.items() if np.nansum(v) > 0]
    if not raised:
        return []
    tuning = "run.tuned in Python" if run.lacks_samples else "bcfl uncertainty"
    return [
        f"Curvature entries raised to the floor, mean per round: {', '.join(raised)}. The data "
        "hardly constrain these parameters (constant-zero inputs, inactive units); their "
        "uncertainty is that of the floor, which is no error. Where the uncertainty of "
        f"predictions matters, tune the prior precision ({tuning})."
    ]


def fusion_warnings(run: RunFolder) -> list[str]:
    """Warnings about fused means beyond the clients', and about priors that outweigh all data."""
    outside = {m: run.series(m, "outside_hull") for m in run.methods}
    beyond = [f"{np.nanmax(v):.2%} ({m})" for m, v in outside.items() if np.nansum(v) > 0]
    outweighed = {m: run.series(m, "outweighed") for m in run.methods}
    stuck = [
        f"{np.nanmax(v):.0%} ({m}, most of them from round {(v > 0.5).any(axis=0).argmax() + 1} on)"
        for m, v in outweighed.items()
        if (v > 0.5).any()
    ]
    messages = []
    if beyond:
        messages.append(
            "Cluster parameters outside the range of the clients' parameters, share in the worst "
            f"round: {', '.join(beyond)}. More than a few per cent indicates unstable fusion: try "
            "precision-weighted fusion, a smaller learning rate or fewer local steps."
        )
    if stuck:
        messages.append(
            "Cluster parameters that data no longer move, share in the worst round: "
            f"{', '.join(stuck)}. Their precision has grown so large that the clients' curvature "
            "is below rounding: literal fusion with the memory accumulate counts the prior once "
            "per client and round. Exact fusion counts it once."
        )
    return messages
