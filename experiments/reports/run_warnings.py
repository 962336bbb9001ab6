"""What a reader should know before the numbers of a run: failures and doubtful results."""

from __future__ import annotations

from collections import Counter

import numpy as np

from experiments.runs.run_folder import RunFolder


def failures(run: RunFolder) -> list[tuple[str, str, int]]:
    """Method, message and count of the failures of clients, most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for method in run.methods:
        for rounds in run.rounds[method].values():
            for entry in rounds:
                counts.update((method, text) for text in entry.get("failures") or ())
    return [(method, text, times) for (method, text), times in counts.most_common()]


def warnings(run: RunFolder) -> list[str]:
    """Warnings about unreliable fused posteriors and underpowered support tests."""
    floored = {m: run.series(m, "num_floored") for m in run.methods}
    raised = [f"{np.nanmean(v):,.0f} ({m})" for m, v in floored.items() if np.nansum(v) > 0]
    few = {m: run.facts(m, "devices_with_too_few_pairs") for m in run.methods}
    underpowered = [f"{np.nanmax(v):,.0f} ({m})" for m, v in few.items() if np.nansum(v) > 0]
    messages = []
    if underpowered:
        messages.append(
            "Devices with too few samples for the support test, maximum per round: "
            f"{', '.join(underpowered)}. Their p-values cannot reach the significance level (at "
            "0.1 that takes four samples on which two models differ), so their clusters receive "
            "no support and never merge: hold out more samples (validation), or raise alpha."
        )
    if raised:
        messages.append(
            f"Curvature entries raised to the floor, mean per round: {', '.join(raised)}. The data "
            "hardly constrain these parameters (constant-zero inputs, inactive units); their "
            "uncertainty is that of the floor."
        )
    return messages + fusion_warnings(run)


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
