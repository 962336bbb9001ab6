"""How well each client's served model predicts, asked through the same seam as everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bcfl.clients import TEST
from bcfl.hypothesis import HypothesisSet
from bcfl.posterior import Posterior
from bcfl.prediction import PredictionSums
from bcfl.requests import Exchange, Score, Steps

NEGLIGIBLE = 1e-9


def served_mixture(hypotheses: HypothesisSet, client: str) -> dict[Posterior, float]:
    """The models that serve a client and their probabilities, over all hypotheses.

    p(model) = sum over hypotheses of the hypothesis' weight times the client's serving probability
    (BCFL, equation 10 seen from one client). Probabilities below 1e-9 are left out.
    """
    by_key: dict[str, tuple[Posterior, float]] = {}
    for weight, hypothesis in zip(hypotheses.weights, hypotheses, strict=True):
        serving = hypothesis.served_by(client)
        for posterior, share in zip(hypothesis.clusters, serving, strict=True):
            if weight * share > NEGLIGIBLE:
                _, so_far = by_key.get(posterior.key, (posterior, 0.0))
                by_key[posterior.key] = (posterior, so_far + float(weight * share))
    total = sum(share for _, share in by_key.values())
    return {posterior: share / total for posterior, share in by_key.values()}


def evaluate(
    hypotheses: HypothesisSet, clients: Sequence[str]
) -> Steps[Mapping[str, PredictionSums]]:
    """Ask every client how the mixture that serves it predicts its test samples."""
    mixtures = {client: served_mixture(hypotheses, client) for client in clients}
    asked = {
        client: Score(
            client,
            tuple(posterior.key for posterior in mixture),
            "prediction",
            TEST,
            weights=tuple(mixture.values()),
        )
        for client, mixture in mixtures.items()
    }
    replies = yield Exchange.of(asked.values(), (m for h in hypotheses for m in h.clusters))
    return {client: replies[score] for client, score in asked.items() if score in replies}
