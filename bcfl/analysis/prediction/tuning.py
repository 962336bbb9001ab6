"""Prior precision and temperature of predictions, tuned on held-out samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from bcfl.analysis.prediction.serving import rule_of
from bcfl.data.names import MEMORY, TEST, TRAIN, VALIDATION
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.protocol.requests import Exchange, Score, Steps
from bcfl.protocol.statistics.held_out import HeldOutLosses
from posteriors.curvature.likelihood import Likelihood
from posteriors.predictive import HeldOutSums, TuningGrid, choose
from posteriors.predictive.tuning import TEMPERATURE_SPREAD

if TYPE_CHECKING:
    from bcfl.analysis.run import Run


TUNING_GRID = TuningGrid(prior_precisions=tuple(10.0**i for i in range(-1, 7)))
NOISE_GRID = TuningGrid(
    TUNING_GRID.prior_precisions, tuple(10.0 ** (i / 8) for i in range(-40, 33))
)
"""Of numbers, whose temperature is the noise variance."""


def grid_of(likelihood: Likelihood) -> TuningGrid:
    """The values that are tried by default."""
    return NOISE_GRID if likelihood == "gaussian" else TUNING_GRID


def default_rule(self: Run) -> PredictionRule:
    """The default prediction rule of a run.

    Where clients set training samples aside (`calibration` of a method), it is `plug-in` with
    the temperature chosen by sums over those, else plain `plug-in`. Tuned on the same
    sums, the predictives that average over the posterior choose a prior so narrow that they
    predict the same at many times the cost (`experiments.studies.calibration`).
    """
    info = self.state.client_info
    holding = [
        client
        for client in self.clients
        if client not in info or info[client].num_samples.get(VALIDATION, 0) > 0
    ]
    plain = PredictionRule()
    if self.executor is None or not holding:
        return plain
    steps = tuning(plain, self.hypotheses, self.model.likelihood, holding, VALIDATION)
    return self.ask(steps) or plain


def tuned(  # noqa: D417 - a method of Run
    self: Run,
    predictive: PredictiveName | PredictionRule = "linearised",
    *,
    clients: Sequence[str] | None = None,
    view: str = VALIDATION,
    grid: TuningGrid | None = None,
) -> PredictionRule:
    """Choose prior precision and temperature by the log loss of held-out samples.

    Of numbers, the temperature is the noise variance, in the square of the targets' unit.

    Each client reports sums over the grid; the sums of all clients decide.

    Args:
        predictive: as in `predict`; a `plug-in` gets a temperature only.
        clients: names of the clients that report sums; None is all.
        view: name of the held-out samples, on which nothing was trained: `validation` for those
            that a method with `calibration` sets aside, `test`, or another view of the clients.
        grid: values to try; by default those of `bcfl.analysis.TUNING_GRID`, or of numbers
            `bcfl.analysis.NOISE_GRID`.

    Returns:
        The rule with the prior precision and temperature of the least summed loss, for
        `run.predict(client, inputs, rule)`.

    Raises:
        ValueError: a client is unknown, no client has such samples, the view holds samples that are
            trained on, the run has no executor, clients have `bcfl.Privacy`, or the predictive
            needs a curvature that the method has not got, or is not of what the model predicts.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> rule = run.tuned("plug-in", view="test")
        >>> rule.temperature
        0.25
        >>> run.predict("ann", [[1.0, 0.0]], rule).mean.round(2)
        array([[0., 1.]])
    """
    rule = rule_of(self, predictive)
    if not isinstance(view, str):
        raise TypeError(f"view must be the name of a view, got {view!r}")
    if view.partition(":")[0] in (TRAIN, MEMORY):
        raise ValueError(
            f"view must name samples that were not trained on, got {view!r}, of which the models "
            "would be far too certain; build the method with calibration=0.2 and leave view out, "
            "or name another view"
        )
    if isinstance(clients, str) or not isinstance(clients, Iterable | None):
        raise TypeError(f"clients must be names of clients, got {clients!r}")
    names = self.clients if clients is None else sorted(clients)
    best = self.ask(tuning(rule, self.hypotheses, self.model.likelihood, names, view, grid))
    if best is None:
        if self.privacy is not None and view != TEST:
            raise ValueError(
                "clients with privacy do not send the sums of held-out losses by which predictions "
                f"are tuned, got view {view!r}; sums over test samples are sent: view='test'"
            )
        raise ValueError(
            f"clients must have samples in the view {view!r}, none has; the option calibration=0.2 "
            "of the method sets a fifth of the training samples aside as 'validation', and view= "
            "names another one, of samples that were not trained on"
        )
    return best


def tuning(
    rule: PredictionRule,
    hypotheses: HypothesisSet,
    likelihood: Likelihood,
    clients: Sequence[str],
    view: str,
    grid: TuningGrid | None = None,
) -> Steps[PredictionRule | None]:
    """Tune prior precision and temperature of a rule on held-out samples.

    Each client reports its log losses over the grid under the mixture of its posterior membership;
    their sum decides, see `posteriors.predictive.choose`.

    Args:
        rule: with the predictive; a `plug-in` has no prior precision.
        hypotheses: with their models.
        likelihood: of these.
        clients: names of the clients that report sums, sorted.
        view: name of the held-out samples.
        grid: values to try; by default those of `grid_of`.

    Returns:
        The rule; None where no client has such samples.

    Raises:
        ValueError: the predictive needs a curvature that no model has got.
    """
    grid = grid_of(likelihood) if grid is None else grid
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
    spread = inf if likelihood == "gaussian" else TEMPERATURE_SPREAD
    best = choose(sum(sums[1:], start=sums[0]), spread)
    precision = None if plug_in else best.prior_precision
    return replace(rule, prior_precision=precision, temperature=best.temperature)
