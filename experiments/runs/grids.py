"""Selection among the variants of a method by held-out training samples, never by test samples.

The clients of a variant that sets samples aside predict these after the last round, with the models
that serve them then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.config.variants import Variant
from experiments.runs.files import PairFiles, write_aside

if TYPE_CHECKING:
    from bcfl import Federation, Run

METRIC = "held_out_nll"
METRICS = (METRIC, "held_out_accuracy")


@dataclass(frozen=True, kw_only=True)
class ChosenVariant:
    """The variant of a method with the least negative log-likelihood of held-out samples.

    Attributes:
        method: name of the method.
        variant: name of the variant.
        scores: mean negative log-likelihood over seeds by variant, nats per sample.
        accuracies: mean accuracy on the same samples by variant.
    """

    method: str
    variant: str
    scores: Mapping[str, float]
    accuracies: Mapping[str, float]

    def __str__(self) -> str:
        best = f"{self.scores[self.variant]:.3f} nats"
        return (
            f"chosen of {len(self.scores)} variants of {self.method} by held-out samples: "
            f"{self.variant} (NLL {best})"
        )


def held_out(federation: Federation, run: Run) -> Mapping[str, Any]:
    """Predictions of the served models on the clients' validation samples.

    Args:
        federation: of the run.
        run: its outcome.

    Returns:
        Sums by client; clients without validation samples, or that do not answer, are left out.
    """
    from bcfl.data import VALIDATION
    from bcfl.rounds import evaluate, evaluate_finetuned

    method, known = federation.method, run.state.client_info
    clients = sorted(c for c, info in known.items() if info.num_samples.get(VALIDATION, 0) > 0)
    if not clients:
        return {}
    if method.finetuned is None:
        return run.ask(evaluate(run.hypotheses, clients, run.model, method.pooling, VALIDATION))
    steps = evaluate_finetuned(
        run.hypotheses, clients, method.finetuned, run.model, VALIDATION, method.pooling
    )
    return run.ask(steps)


def write_held_out(federation: Federation, run: Run, files: PairFiles) -> None:
    """Write the scores on held-out samples, if there are any.

    Args:
        federation: that ran.
        run: its outcome.
        files: of the method and seed.
    """
    from bcfl.analysis import metrics

    sums = held_out(federation, run)
    if sums:
        found = metrics.SUMMARIES[run.model.likelihood](sums)
        scores = dict(zip(METRICS, (found["nll"], found.get("accuracy")), strict=True))
        write_aside(files.held_out, json.dumps(scores, indent=2) + "\n")


def read_held_out(files: PairFiles) -> dict[str, float | None]:
    """The scores of held-out samples, empty where none were written."""
    if not files.held_out.is_file():
        return {}
    scores: dict[str, float | None] = json.loads(files.held_out.read_text(encoding="utf-8"))
    return scores


def choices(methods: Mapping[str, Mapping[str, Any]]) -> tuple[ChosenVariant, ...]:
    """For each method of which all variants were scored, the one that is chosen.

    Args:
        methods: metrics by method and variant, as in `summary.json`.
    """
    grouped: dict[str, list[str]] = {}
    for label in methods:
        variant = Variant.of(label)
        if variant.options:
            grouped.setdefault(variant.method, []).append(label)
    chosen = []
    for method, labels in grouped.items():
        scores, accuracies = (_means(methods, labels, metric) for metric in METRICS)
        if len(labels) > 1 and len(scores) == len(labels):
            best = min(labels, key=lambda label: scores[label])
            chosen.append(
                ChosenVariant(method=method, variant=best, scores=scores, accuracies=accuracies)
            )
    return tuple(chosen)


def _means(
    methods: Mapping[str, Mapping[str, Any]], labels: list[str], metric: str
) -> dict[str, float]:
    means = {label: methods[label].get(metric, {}).get("mean") for label in labels}
    return {label: mean for label, mean in means.items() if mean is not None}
