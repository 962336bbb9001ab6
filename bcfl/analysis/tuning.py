"""The prior precision and temperature of a prediction rule, from sums over held-out samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule
from bcfl.protocol.requests import Exchange, Score, Steps
from bcfl.protocol.statistics.held_out import HeldOutLosses
from posteriors.predictive import HeldOutSums, TuningGrid, choose

TUNING_GRID = TuningGrid(prior_precisions=tuple(10.0**i for i in range(-1, 7)))


def tuned(
    rule: PredictionRule,
    hypotheses: HypothesisSet,
    clients: Sequence[str],
    view: str,
    grid: TuningGrid = TUNING_GRID,
) -> Steps[PredictionRule | None]:
    """Tune prior precision and temperature of a rule on held-out samples.

    Each client reports its log losses over the grid under the mixture of its posterior membership;
    their sum decides, see `posteriors.predictive.choose`.

    Args:
        rule: with the predictive; a `plug-in` has no prior precision.
        hypotheses: with their models, of a classifier.
        clients: names of the clients that report sums, sorted.
        view: name of the held-out samples.
        grid: values to try.

    Returns:
        The rule; None where no client has such samples.

    Raises:
        ValueError: the predictive needs a curvature that no model has got.
    """
    plug_in = rule.predictive == "plug-in"
    if plug_in:
        grid = replace(grid, prior_precisions=grid.prior_precisions[:1])
    scores: list[Score] = []
    models: dict[str, Posterior] = {}
    for client in clients:
        mixture = Membership.of_client(hypotheses, client).mixture
        models |= {posterior.key: posterior for posterior in mixture}
        statistic = HeldOutLosses(tuple(mixture.values()), rule, grid)
        scores.append(
            Score(
                client=client, models=tuple(p.key for p in mixture), statistic=statistic, view=view
            )
        )
    rule.check(models.values())
    replies = yield Exchange.of(scores, models.values())
    sums: list[HeldOutSums] = [replies[score] for score in scores if score in replies]
    if not sums:
        return None
    best = choose(sum(sums[1:], start=sums[0]))
    precision = None if plug_in else best.prior_precision
    return replace(rule, prior_precision=precision, temperature=best.temperature)
