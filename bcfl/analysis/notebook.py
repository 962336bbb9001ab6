"""A run as HTML, as notebooks show it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bcfl.analysis.run import Run

SHOWN = ("accuracy", "micro_f1", "macro_f1", "rmse", "nll", "ece", "coverage_error", "ari")


def in_html(run: Run) -> str:
    """Metrics of the last round and the kept hypotheses, as two tables.

    Args:
        run: the run.
    """
    hypotheses, scores = run.hypotheses, run.metrics()
    known = {name: scores[name] for name in SHOWN if np.isfinite(scores.get(name, np.nan))}
    rows = [
        (f"{weight:.3g}", " ".join(map(str, hypothesis.association.sizes)))
        for weight, hypothesis in zip(hypotheses.weights, hypotheses, strict=True)
    ]
    title = f"<p><b>{len(run.clients)} clients, {run.state.round} rounds</b></p>"
    last = _table(list(known), [[f"{value:.3f}" for value in known.values()]]) if known else ""
    return f"{title}{last}<p>{escape(repr(hypotheses))}</p>" + _table(
        ["weight", "clients per cluster"], rows
    )


def _table(head: list[str], rows: Sequence[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
