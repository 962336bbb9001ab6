"""How well each client's served model predicts, asked through the same seam as everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bcfl.clients import TEST
from bcfl.federation.membership import Membership
from bcfl.hypothesis import HypothesisSet
from bcfl.posterior import Posterior
from bcfl.prediction import PredictionSums
from bcfl.requests import Exchange, Score, Steps


def served_mixture(hypotheses: HypothesisSet, client: str) -> dict[Posterior, float]:
    """The models that serve a client and their probabilities, over all hypotheses.

    p(model) = sum over hypotheses of the hypothesis' weight times the client's serving probability
    (BCFL, equation 10 seen from one client). Probabilities up to 1e-9 are left out.
    """
    return Membership.of_client(hypotheses, client).mixture


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
